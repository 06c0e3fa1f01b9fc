"""Use the library from Python: what `compositional.open` and `compositional.train` return, for notebooks and scripts."""
