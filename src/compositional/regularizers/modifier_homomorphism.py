"""The published term against "modifier homomorphism error", with controls: a small network averages the states of two words.

For each verb that a modifier follows directly, the modifier's operator (linear, ReLU, linear; the model's `operators`) maps the
states at the verb and at the modifier to a prediction of their mean. R is the mean squared error over the width and over the
batch's pairs, averaged over the modifiers in the batch, then over two layers. Operators and network are trained together, and
nothing is detached (An and Du, arXiv 2601.18858, and their repository).

The target is a function of the operator's inputs: a linear operator has R = 0 whatever the network does. In the term
`homomorphism`, the target is not.

Differences from the repository: pairs are those of the batch, in the pass of the loss. The repository reads 256 pairs, drawn from
the training set, in a second pass at each step. Here a step with the term hence costs about as much as one without.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from compositional.kinds.tagging import Batch, TaggingSplit
from compositional.language.vocabulary import END
from compositional.layers.functional import linear
from compositional.regularizers import Step, homomorphism

APPLIES_TO = ("tagging",)
REPRESENTATIONS = ("middle_states", "last_states")
PARAMETERS = {
    "verbs": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "default": ["walk", "jump", "look", "turn"],
        "description": "words that a modifier can follow",
    },
    "modifiers": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "default": ["twice", "thrice"],
        "description": "modifiers; the model needs an operator for each",
    },
    "target": {
        "enum": ["mean", "shuffled", "norm"],
        "default": "mean",
        "description": "what is predicted. mean: the mean of the two states; as controls, shuffled: the mean of another pair "
        "with the same modifier; norm: nothing, R is the squared norm of the two states, averaged over them and the width",
    },
}


class Prepared(NamedTuple):
    """Tokens of verbs and of modifiers, and the largest number of pairs in a training sentence."""

    verbs: Tensor
    modifiers: Tensor
    most: int


def _pairs(inputs: Tensor, verbs: Tensor, modifiers: Tensor) -> Tensor:
    """Whether a verb and its modifier are at positions t and t + 1: (..., S) -> (..., S - 1)."""
    return torch.isin(inputs[..., :-1], verbs) & torch.isin(inputs[..., 1:], modifiers)


def prepare(parameters: dict, split: TaggingSplit) -> Prepared:
    """What the term needs to know about the training set.

    Raises:
        ValueError: the task's inputs lack a word, or no modifier follows a verb.
    """
    words = split.source.words
    for option in ("verbs", "modifiers"):
        if missing := [word for word in parameters[option] if word not in words]:
            raise ValueError(
                f"modifier_homomorphism: {option}: the task's inputs have no word {', '.join(missing)}; name some of "
                f"{', '.join(words[END + 1 :])}"
            )
    verbs, modifiers = (
        torch.tensor([words.index(word) for word in parameters[option]], device=split.device) for option in ("verbs", "modifiers")
    )
    most = int(_pairs(split.inputs, verbs, modifiers).sum(1).max())
    if not most:
        raise ValueError(
            f"modifier_homomorphism: in training, none of {', '.join(parameters['modifiers'])} follows one of "
            f"{', '.join(parameters['verbs'])}; name words that occur next to each other"
        )
    return Prepared(verbs, modifiers, most)


def _operator(step: Step, word: str, states: Tensor) -> Tensor:
    """The prediction of a modifier's operator: (R, P, 2 D) -> (R, P, D).

    Raises:
        ValueError: the model has no operator for the word.
    """
    name = f"operators.{word}"
    if f"{name}.0.weight" not in step.weights:
        raise ValueError(
            f"modifier_homomorphism: the model has no operator for {word!r}; add it to the model's option `operators`, as in "
            f"causal_tagger: {{operators: [{', '.join(step.parameters['modifiers'])}]}}"
        )
    for layer in (0, 2):
        weight, bias = step.weights[f"{name}.{layer}.weight"], step.weights[f"{name}.{layer}.bias"]
        states = linear(states if layer == 0 else functional.relu(states), weight.transpose(1, 2), bias)
    return states


def penalty(step: Step[Batch]) -> Tensor:
    """R, (R,)."""
    prepared, inputs = step.prepared, step.batch.inputs
    found = _pairs(inputs, prepared.verbs, prepared.modifiers)
    place = torch.arange(found.shape[-1], device=inputs.device)
    # The first pairs of every sentence. All keys differ, so the order does not depend on the library.
    at = torch.where(found, len(place) - place, -place).topk(prepared.most).indices
    member = found.gather(-1, at).flatten(1)  # (R, P), P = B times the largest number of pairs
    modifiers = inputs.gather(-1, at + 1).flatten(1)
    chosen = [functional.one_hot(own, inputs.shape[-1]).unsqueeze(-1) for own in (at, at + 1)]
    values, present = [], []
    for shown in step.named(REPRESENTATIONS):
        # A product with a one-hot vector, whose gradient needs no scatter.
        verb, modifier = ((own * shown.values.unsqueeze(2)).sum(3).flatten(1, 2) for own in chosen)
        for token, word in zip(prepared.modifiers, step.parameters["modifiers"], strict=True):
            own = member & (modifiers == token)
            if step.parameters["target"] == "norm":
                squares = (verb.square() + modifier.square()).mean(-1) / 2
            else:
                target = (verb + modifier) / 2
                if step.parameters["target"] == "shuffled":
                    target = homomorphism.shuffled(step, target, own)
                squares = (_operator(step, word, torch.cat([verb, modifier], -1)) - target).square().mean(-1)
            count = own.sum(1)
            values.append((squares * own).sum(1) / count.clamp(min=1))
            present.append((count > 0).to(squares.dtype))
    return torch.stack(values).sum(0) / torch.stack(present).sum(0).clamp(min=1)
