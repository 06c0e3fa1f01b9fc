"""The error with which a plug-in is refused: its file and line, what was expected, and the usual cause. In no fingerprint."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from compositional.models import Model

ROUNDING = 1e-4  # smaller relative differences are rounding errors
_CAUSES = {
    "mixes": "Runs mix: lambda and seeds would mean nothing. Usual cause: a sum, mean, softmax or norm over all axes, or over "
    "axis 0, which is the run's; reduce over axes 1 and up, as in values.sum((1, 2))",
    "rounds": "Only the last bits differ. Usual cause: a product with a width that is no multiple of 16 "
    "(layers.functional.padded_linear), or one sum over the numbers of several runs",
    "odd": "Only the last bits differ: the product of an odd number of examples may be rounded differently next to other runs. "
    "Change the task's options so that it has an even number of training examples",
    "changes": "Usual cause: something that is kept from one pass to the next (a counter, a running average), or random numbers "
    "that are not the run's own (step.normal, tap.noise; in a Network torch's, not NumPy's)",
    "shape": "Usual cause: a reduction over too many or too few axes, or a forgotten run axis, the first one",
    "sizes": "Usual cause: a reduction over too many or too few axes, or another number of outputs than the task has",
    "dtype": "Usual cause: .half(), .bfloat16(), or autocast; runs are computed and stored in single precision",
    "weights": "Only the optimizer changes weights, and nothing changes buffers. Usual cause: a counter or a running average "
    "that is kept as a buffer, or an operation on .data or under torch.no_grad whose name ends in _. Instead of "
    "spectral_norm, use a parametrization that divides the weight by torch.linalg.matrix_norm(weight, 2)",
    "data": "All runs of the job and their evaluation read the same data. Usual cause: an operation whose name ends in _",
    "kept": "A resumed run, and a run that is computed after another, would start from other values. Usual cause: a counter",
    "earlier": "A resumed run, a run after another in its job, and evaluation would start from other values. Usual cause: "
    "something that depends on data or weights and is stored when it is first needed, in an attribute or in a dictionary at the "
    "top of the file",
    "examples": "Its accuracy would depend on the size of a batch. Usual cause: dropout without training=self.training, no "
    "batch_first=True, a mean or norm over the examples, batch normalization with track_running_stats=False",
    "targets": "Its accuracy would mean nothing. Usual cause: batch.labels or batch.targets in forward; only a "
    "regularizer may read them",
    "random": "Every run would be measured with the same arbitrary draw. Usual cause: dropout, noise or a random choice that "
    "does not ask for self.training",
    "name": "Give it another name",
    "padding": "A sentence's answer would depend on the longest input of its split. Usual cause: a recurrent layer without "
    "pack_padded_sequence, attention without input_mask, a mean or the last state over all positions",
    "device": "Usual cause: a tensor that is made without device=",
    "shown": "Usual cause: a name that is written differently in REPRESENTATIONS and in tap(...)",
    "unused": "The term would have no effect on what comes after the representation. Usual cause: a value that is shown but not "
    "used; write h = tap(name, h, mask) or, in a Network, h = self.shown(h)",
    "watched": "Write return replace(batch, images=...), or return batch",
    "drawn": "What a step draws must depend on the key and the step alone: a resumed run draws it again",
    "global": "No seed determines them, and a resumed run would draw others. Draw from step.normal or tap.noise, in initialize "
    "from its source; in a Network, with torch, as in torch.rand(()) < 0.1",
    "settings": "They are those of the whole process: the numbers of all of its runs would change. Leave them to the project",
    "later": "It could copy the target, and its accuracy would mean nothing. Usual cause: no causal mask, a bidirectional "
    "decoder, or a convolution that is padded on both sides",
    "in place": "Other passes of the same step read the same batch. Usual cause: an operation whose name ends in _, or "
    "inplace=True; write x = (x - 0.5) * 2 instead of x.sub_(0.5).mul_(2)",
    "gradient": "It could not change any weight. Usual cause: detach, argmax, a comparison, torch.no_grad, or "
    "a conversion to NumPy",
    "foreign": "They are neither trained nor kept, and every process would draw others. Usual cause: a layer that is made "
    "outside __init__, such as nn.Linear(...) at the top of the file, as an attribute of the class, or in forward or penalty",
    "finite": "Usual cause: the logarithm, root or quotient of a 0, or padding that is not masked",
}


class PluginError(ValueError):
    """A plug-in is wrong. The message names its file and line, what was expected, and the usual cause."""


def code_of(function: Callable) -> Any:
    """The function that was written with `def`, without decorators and functools.partial."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return function if inspect.isroutine(function) else type(function).__call__


def refuse(function: Callable, problem: str, cause: str) -> NoReturn:
    """Raise the error. cause: a key of _CAUSES."""
    code = code_of(function).__code__
    raise PluginError(f"{code.co_filename}, line {code.co_firstlineno}, {code.co_name}: {problem}. {_CAUSES[cause]}")


def forward_of(model: Model) -> Callable:
    """The forward pass that a model's author wrote."""
    return model.Network.forward if model.Network else model.forward
