"""Against the locality bias: how one region of an image affects the output should depend on the content of another region.

R = mean over the batch of |cos(G, G')|. G is the gradient of the score with respect to region I of an image; G' is the same
gradient after the content of a disjoint region J was replaced by that of the next example in the batch ("input gradient change";
Razin, Maman, Cohen, ICML 2022, section 7). A function that treats I and J separately (a sum or product of local functions) has
R = 1.
Training with lambda > 0 raises the separation rank between distant regions. The regions are an image's two components in random
order, or two random squares; each run draws one pair per step. An exchange of components can make a combination of the test set,
without its label.

With two classes the score is the logit, as in the paper, whatever the label: batch normalization mixes the gradients of a batch,
so their signs matter. With more classes it is the label's score minus the mean of the others.
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
        "description": "I and J: the image's two components, or two random squares; auto: components if the task has them",
    },
    "square_side": {"type": "integer", "minimum": 1, "default": 2, "description": "side of the random squares in pixels"},
    "square_distance": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "minimum gap in pixels between the squares on at least one axis; 0: they are only disjoint",
    },
}
_EPSILON = 1e-12


def watch(batch: Batch) -> Batch:
    """The batch with images that require gradients."""
    return replace(batch, images=batch.images.detach().requires_grad_())


def _uniform(step: Step[Batch], count: int) -> Tensor:
    """Uniform numbers in (0, 1), (R, count): the step's normal noise after the normal distribution function."""
    return torch.special.ndtr(step.normal(torch.Size((count,))).double()).clamp(1e-9, 1 - 1e-9)


def _squares(uniform: Tensor, height: int, width: int, side: int, distance: int) -> tuple[Tensor, Tensor]:
    """Masks (R, height, width) of two random squares per run; the second is uniform among those far enough from the first.

    Args:
        uniform: (R, 2), uniform numbers in (0, 1) that select the squares.

    Raises:
        ValueError: a first square may leave no room for a second one.
    """
    rows, columns = height - side + 1, width - side + 1
    clear = side + distance  # minimum distance between the corners on at least one axis
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
    """Masks (R, 1, 1, height, width) of I and J, drawn for each run.

    Raises:
        ValueError: `regions` is components and the task has none, or the images may leave no room for two squares.
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
    """Unit vectors (R, B, pixels): the gradient of each example's score with respect to its own pixels in a region."""
    if outputs.shape[-1] == 2:
        score = outputs[..., 1] - outputs[..., 0]
    else:
        own = outputs.gather(2, batch.labels.unsqueeze(-1)).squeeze(-1)
        score = own - (outputs.sum(-1) - own) / (outputs.shape[-1] - 1)
    (gradient,) = torch.autograd.grad(score.sum(), batch.images, create_graph=True)
    gradient = (gradient * where).flatten(2)
    return gradient / (gradient.square().sum(-1, keepdim=True) + _EPSILON).sqrt()


def penalty(step: Step[Batch]) -> Tensor:
    """R, (R,), in [0, 1]."""
    inside, exchanged = regions(step)
    batch = step.batch
    images = torch.where(exchanged, batch.images.roll(-1, 1), batch.images)
    changed = watch(replace(batch, images=images))
    outputs, _ = step.again(changed)
    gradients = _gradient(batch, step.outputs, inside), _gradient(changed, outputs, inside)
    return (gradients[0] * gradients[1]).sum(-1).abs().mean(-1)
