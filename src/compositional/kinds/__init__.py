"""What a batch is. A kind of task is a module with what `Kind` says. Its literals are read without importing it.

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
    """Examples of R runs, as the model sees them, with their targets. Losses and metrics have no unit."""

    def output_shape(self, about: dict[str, Any]) -> tuple[int | None, ...]:
        """Shape of one run's outputs, without the run axis; None: any size. about: task.json."""

    def single(self) -> Any:
        """What a `class Network` (`training.networks`) is given, which knows one run and no run axis: this batch, R being 1."""

    def packed(self, outputs: Tensor) -> Tensor:
        """What a `class Network` gives, (B, ...), as a model gives it for a lone run: (1, ...)."""

    def losses(self, outputs: Tensor, loss: str) -> Tensor:
        """Parts of the loss: the model's outputs (R, ...) -> (R, N), whose sum over N is that over the batch's examples.

        loss: one of the kind's LOSSES.

        Raises:
            ValueError: this task's targets have no such loss.
        """

    def example_losses(self, losses: Tensor) -> Tensor:
        """What `losses` gives, summed over each example's parts: (R, N) -> (R, B)."""

    def metrics(self, outputs: Tensor) -> dict[str, Tensor]:
        """What evaluation reports besides the loss, as "accuracy": a value an example, (R, B), by name."""


@runtime_checkable
class Influenced(Batch, Protocol):
    """A batch that tells the relevant component of its examples from the redundant one."""

    def influence(self, forward: Callable[[Self, Callable[..., Tensor]], Tensor], about: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Norms of the output's gradient with respect to the relevant and the redundant component, (R, B) each.

        Args:
            forward: (batch, tap) -> outputs.
            about: task.json.

        Raises:
            ValueError: this task does not say which of its components is redundant.
        """


@runtime_checkable
class Margined(Batch, Protocol):
    """A batch of which single outputs can be recorded."""

    def margins(self, outputs: Tensor) -> Tensor:
        """How far each example is on its target's side, (R, B): positive where it is right."""


class Imaged(Batch, Protocol):
    """A batch of images, whatever their targets: what a convolutional network needs."""

    @property
    def images(self) -> Tensor:
        """(R, B, channels, height, width)."""


class Recombined(Batch, Protocol):
    """A batch whose examples have two components, the second of which must not matter or can be exchanged."""

    def partner(self) -> Tensor:
        """For each row its partner, (B,)."""

    def recombine(self) -> Self:
        """Each row's first component with its partner's second one."""

    def exchanged(self, exchange: str) -> Self:
        """The batch after an exchange that must not change its outputs; `exchange` as in `regularizers.recombination`."""


class Split(Protocol):
    """One member of a split task as tensors on a device."""

    def __len__(self) -> int:
        """The number of examples."""

    def training_batches(self, batch_size: int) -> Callable[[Tensor], Batch]:
        """What makes a batch of rows (R, batch_size) as `draw` gives them, for many steps: all its batches have one shape.

        Raises:
            ValueError: there is no batch of this size.
        """

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Rows (steps, batch_size) of one run's training batches. They depend on the key, the step and the size alone."""

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> Sequence[tuple[Tensor, Batch]]:
        """All examples, or about `limit` of them, the same for every run: pairs (rows (n,), batch).

        A batch holds the examples `rows` first; what follows them is filling.
        """


@runtime_checkable
class Described(Split, Protocol):
    """A split whose single examples have names."""

    def describe(self, rows: Tensor) -> list[str]:
        """A name of each of the examples `rows` (n,), as it stands in a metric."""


@runtime_checkable
class Composed(Split, Protocol):
    """A split whose examples are made of known components: combinations (n, C), the item of each."""

    combinations: np.ndarray


@dataclass(frozen=True)
class Kind:
    """What a module here defines; what has a default, where it needs that."""

    # The losses that its batches have, of those that `training.loss` names.
    LOSSES: tuple[str, ...]
    # load(folder, device): the members of a split task by name; `folder` as stage split writes it.
    load: Callable[[Path, str], dict[str, Split]]
    # What a task of this kind must say of itself in task.json, beside what `tasks` asks of every task.
    SAID: tuple[str, ...] = ()
    # Columns of its training set, and of which of the library's features each may be; (): of any.
    COLUMNS: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # The number that divides training.batch_size.
    BATCH_MULTIPLE: int = 1
    # The option of its tasks that says how many training examples there are, if every batch holds them all.
    FULL_BATCH: str | None = None
    # Its batches are `Influenced`, as training.influence_examples needs.
    INFLUENCE: bool = False
    # Its splits are `Described`, its batches `Margined`, as training.record_outputs needs.
    MARGINS: bool = False
    # Stage represent can show its test set to a network: splits are `kinds.sequence.SequenceSplit`s, or batches are
    # `kinds.shared.labelled.Labelled`.
    REPRESENTED: bool = False
    # Figures can show its examples: splits are `kinds.image.ImageSplit`s.
    PICTURED: bool = False
