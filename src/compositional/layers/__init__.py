"""Layers for many runs at once: every weight (R, ...), every activation (R, B, ...), R being the number of runs."""

from torch import Tensor

# The weights of R runs by name, (R, ...) each; of one run, where a model makes them, without the run axis.
Weights = dict[str, Tensor]
