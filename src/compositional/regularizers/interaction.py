"""Against the locality bias: what the network makes of one region of an image should depend on what stands in another.

R = mean over the batch of |cos(G, G')|, where G is the gradient of the score with respect to region I of an image, and G' the
same after the content of a disjoint region J was replaced by that of the batch's next example ("input gradient change"; Razin,
Maman, Cohen, ICML 2022, section 7). A function that treats I and J separately, a sum or product of local functions, has R = 1;
training with lambda > 0 raises the separation rank between distant regions. Regions are the two components of images that have
them, drawn either way round, or two random squares; one pair a step and run.

The score is the logit with two classes, as in the paper, whatever the label: batch normalization mixes the gradients of a
batch, so their signs count. With more classes it is the label's score above the mean of the others.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from compositional.kinds.image import Batch
from compositional.regularizers import Step

APPLIES_TO = ("image",)
REPRESENTATIONS: tuple = ()
PARAMETERS = {
    "regions": {
        "enum": ["auto", "components", "squares"],
        "default": "auto",
        "description": "I and J: the image's two components, or two random squares; auto: components if the image has them",
    },
    "square_side": {"type": "integer", "minimum": 1, "default": 2, "description": "side of the random squares, pixels"},
    "square_distance": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "least gap between the squares on at least one axis, pixels; 0: they are merely disjoint",
    },
}
_EPSILON = 1e-12


def watch(batch: Batch) -> Batch:
    """The batch with images that gradients are taken with respect to."""
    return replace(batch, images=batch.images.detach().requires_grad_())


def _uniform(step: Step[Batch], count: int) -> Tensor:
    """Numbers uniform in (0, 1), (R, count): the step's normal noise passed through its distribution function."""
    return torch.special.ndtr(step.normal(torch.Size((count,))).double()).clamp(1e-9, 1 - 1e-9)


def _squares(uniform: Tensor, height: int, width: int, side: int, distance: int) -> tuple[Tensor, Tensor]:
    """Masks (R, height, width) of two random squares a run; the second is uniform over all that keep clear of the first.

    Args:
        uniform: (R, 2), which squares.

    Raises:
        ValueError: a first square may leave no room for a second.
    """
    rows, columns = height - side + 1, width - side + 1
    clear = side + distance  # least difference of the corners on at least one axis
    if rows < 1 or columns < 1 or max(rows, columns) < 2 * clear:
        raise ValueError(
            f"interaction: in images of {height} x {width} a square of {side} pixels may leave no room for another {distance} "
            "apart; lower square_side or square_distance"
        )
    device = uniform.device
    corner = torch.arange(rows * columns, device=device)
    top, left = corner // columns, corner % columns
    first = (uniform[:, 0] * rows * columns).long()
    allowed = (top - top[first, None]).abs().ge(clear) | (left - left[first, None]).abs().ge(clear)  # (R, corners)
    wanted = (uniform[:, 1] * allowed.sum(1)).long() + 1
    second = (allowed.cumsum(1) < wanted[:, None]).sum(1)
    down, across = torch.arange(height, device=device)[:, None], torch.arange(width, device=device)

    def mask(index: Tensor) -> Tensor:
        y, x = top[index, None, None], left[index, None, None]
        return (down >= y) & (down < y + side) & (across >= x) & (across < x + side)

    return mask(first), mask(second)


def regions(step: Step[Batch]) -> tuple[Tensor, Tensor]:
    """Masks (R, 1, 1, height, width) of I and J, drawn anew for each run.

    Raises:
        ValueError: the images have no components and these are asked for, or may leave no room for two squares.
    """
    height, width = step.batch.images.shape[-2:]
    wanted = step.parameters["regions"]
    if wanted == "components" and not step.batch.regions:
        raise ValueError("interaction: regions: components is for images made of two components; ask for squares")
    if wanted != "squares" and step.batch.regions:
        masks = torch.zeros(2, height, width, dtype=torch.bool, device=step.batch.images.device)
        for mask, place in zip(masks, step.batch.regions, strict=True):
            mask[place] = True
        exchanged = _uniform(step, 1).lt(0.5)[:, :, None]
        pair = torch.where(exchanged, masks[1], masks[0]), torch.where(exchanged, masks[0], masks[1])
    else:
        sizes = step.parameters["square_side"], step.parameters["square_distance"]
        pair = _squares(_uniform(step, 2), height, width, *sizes)
    return pair[0][:, None, None], pair[1][:, None, None]


def _gradient(batch: Batch, outputs: Tensor, where: Tensor) -> Tensor:
    """Unit vectors (R, B, pixels): the gradient of every example's score with respect to its own pixels in a region."""
    if outputs.shape[-1] == 2:
        score = outputs[..., 1] - outputs[..., 0]
    else:
        own = outputs.gather(2, batch.labels.unsqueeze(-1)).squeeze(-1)
        score = own - (outputs.sum(-1) - own) / (outputs.shape[-1] - 1)
    (gradient,) = torch.autograd.grad(score.sum(), batch.images, create_graph=True)
    gradient = (gradient * where).flatten(2)
    return gradient / (gradient.square().sum(-1, keepdim=True) + _EPSILON).sqrt()


def penalty(step: Step[Batch]) -> Tensor:
    """(R,), in [0, 1]."""
    inside, exchanged = regions(step)
    batch = step.batch
    images = torch.where(exchanged, batch.images.roll(-1, 1), batch.images)
    changed = watch(replace(batch, images=images))
    outputs, _ = step.again(changed)
    gradients = _gradient(batch, step.outputs, inside), _gradient(changed, outputs, inside)
    return (gradients[0] * gradients[1]).sum(-1).abs().mean(-1)
