"""Kinds of tasks: what an example and a batch are made of. A kind is a module that defines what `Kind` lists.

The literals of a kind's module are read without importing it.

R is the number of runs that compute together, B the examples of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


class Batch(Protocol):
    """Examples of R runs, as the model sees them, and their targets. Losses and metrics have no unit."""

    def output_shape(self, about: dict[str, Any]) -> tuple[int | None, ...]:
        """Shape of one run's outputs, without the run axis; None stands for any size. about: the content of task.json."""

    def single(self) -> Any:
        """This batch of a single run (R = 1) without the run axis, as a `class Network` (`training.networks`) takes it."""

    def packed(self, outputs: Tensor) -> Tensor:
        """Outputs of a `class Network`, (B, ...), in the form that a model returns for a single run: (1, ...)."""

    def losses(self, outputs: Tensor, loss: str) -> Tensor:
        """Parts of the loss: outputs (R, ...) -> (R, N). Their sum over N is the sum of the losses of the batch's examples.

        loss: one of the kind's LOSSES.

        Raises:
            ValueError: this loss does not fit the task's targets.
        """

    def example_losses(self, losses: Tensor) -> Tensor:
        """The result of `losses`, summed over the parts of each example: (R, N) -> (R, B)."""

    def metrics(self, outputs: Tensor) -> dict[str, Tensor]:
        """What evaluation reports besides the loss, such as "accuracy": by name, one value per example, (R, B)."""


@runtime_checkable
class Influenced(Batch, Protocol):
    """A batch that distinguishes the relevant component of its examples from the redundant one."""

    def influence(self, forward: Callable[[Self, Callable[..., Tensor]], Tensor], about: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Norms of the output's gradient with respect to the relevant and the redundant component, (R, B) each.

        Args:
            forward: (batch, tap) -> outputs.
            about: the content of task.json.

        Raises:
            ValueError: the task does not declare which of its components is redundant.
        """


@runtime_checkable
class Margined(Batch, Protocol):
    """A batch whose examples' margins can be recorded one by one."""

    def margins(self, outputs: Tensor) -> Tensor:
        """Distance of each example's output from the decision boundary, (R, B): positive if the prediction is right."""


class Imaged(Batch, Protocol):
    """A batch of images with any kind of target, as a convolutional network needs it."""

    @property
    def images(self) -> Tensor:
        """(R, B, channels, height, width)."""


class Recombined(Batch, Protocol):
    """A batch of examples with two components, where the second does not affect the target or can be exchanged."""

    def partner(self) -> Tensor:
        """The index of each row's partner, (B,)."""

    def recombine(self) -> Self:
        """The batch in which each row combines its first component with its partner's second one."""

    def exchanged(self, exchange: str) -> Self:
        """The batch after an exchange that should not change its outputs; `exchange` as in `regularizers.recombination`."""


class Split(Protocol):
    """One member of a split task as tensors on a device."""

    def __len__(self) -> int:
        """The number of examples."""

    def training_batches(self, batch_size: int) -> Callable[[Tensor], Batch]:
        """A function that turns rows (R, batch_size), as `draw` returns them, into a batch. All its batches have the same shape.

        Raises:
            ValueError: the split has no batches of this size.
        """

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Rows (steps, batch_size) of one run's training batches. They depend only on the key, the step and the size."""

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> Sequence[tuple[Tensor, Batch]]:
        """All examples, or about `limit` of them, the same for every run, as pairs (rows (n,), batch).

        A batch starts with the examples `rows`; examples after these are padding.
        """


@runtime_checkable
class Described(Split, Protocol):
    """A split that can name each of its examples."""

    def describe(self, rows: Tensor) -> list[str]:
        """A name for each of the examples `rows` (n,), as metrics contain it."""


@runtime_checkable
class Composed(Split, Protocol):
    """A split whose examples are made of known components. combinations: (n, C), the item of each component."""

    combinations: np.ndarray


@dataclass(frozen=True)
class Kind:
    """The contract of a module in this folder. Names with a default are optional."""

    # Which of the losses of `training.loss` its batches can compute.
    LOSSES: tuple[str, ...]
    # load(folder, device): the members of a split task by name; `folder` is what the stage split wrote.
    load: Callable[[Path, str], dict[str, Split]]
    # Keys that a task of this kind must write to task.json, in addition to those that `tasks` requires of every task.
    SAID: tuple[str, ...] = ()
    # Columns of its training set, and the types of `datasets` features that each may have; (): any type.
    COLUMNS: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Columns that models see, of which a task has at least one: the audit of a test set must compare some of these and no others.
    INPUTS: tuple[str, ...] = ()
    # training.batch_size must be a multiple of this number.
    BATCH_MULTIPLE: int = 1
    # If every batch holds all training examples: the option of its tasks that states their number.
    FULL_BATCH: str | None = None
    # Its batches are `Influenced`, which training.influence_examples needs.
    INFLUENCE: bool = False
    # Its splits are `Described` and its batches `Margined`, which training.record_outputs needs.
    MARGINS: bool = False
    # The stage represent can show its test set to a network: splits are `kinds.sequence.SequenceSplit`s, or batches are
    # `kinds.shared.labelled.Labelled`.
    REPRESENTED: bool = False
    # Figures can show its examples: splits are `kinds.image.ImageSplit`s.
    PICTURED: bool = False
