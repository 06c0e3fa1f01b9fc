"""The library from Python: what `compositional.open` and `compositional.train` give, for notebooks and scripts of one's own."""
