"""A phrase's representation should follow from those of its parts, by one operator for each rule of the grammar of SCAN.

r(x) is the mean over positions of the encoder's states when it reads the phrase x *alone*, so that r(whole) is not computed from
r(parts). There are two kinds of rules: a conjunction joins the two halves of a command; a modifier, the last word of the first
half, changes the rest of that half. For each rule, the sum over the batch and the width of |r(whole) - O_rule(r(parts))|^2 is
divided by that of |r(whole) - mean r(whole)|^2 (detached). R is the mean of this ratio over the rules in the batch. A ratio of 1
is no better than the mean, and scaling r changes nothing. Each phrase of a batch counts once. Rules with fewer than three phrases
are left out.

The idea is from An and Du (arXiv 2601.18858), but their term is different: its target is the mean of the operator's own inputs,
so that some linear operator has R = 0 for any network. Here the linear operator is not trained together with the network. It is
ridge regression on the batch, in closed form. Each phrase is predicted from the others (leave one out), because a batch has fewer
phrases of a rule than the operator has inputs.

The network reads only parts of training commands, none longer than its command. A step costs two or three additional passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from compositional.kinds.sequence import Batch, SequenceSplit
from compositional.language.vocabulary import END, PAD, START
from compositional.layers.ragged import Layout
from compositional.regularizers import Representation, Step

_STUDIES = "means"  # of tasks with episodes, the word between a command and its actions; every input has it

APPLIES_TO = ("sequence",)
REPRESENTATIONS = ("encoder_states", "command_states")
PARAMETERS = {
    "conjunctions": {
        "type": "array",
        "items": {"type": "string"},
        "default": ["and", "after"],
        "description": "words that join two phrases; each is a rule, and a command is cut at the first one",
    },
    "modifiers": {
        "type": "array",
        "items": {"type": "string"},
        "default": ["twice", "thrice"],
        "description": "words that follow a phrase; each is a rule",
    },
    "rules": {
        "enum": ["all", "modifiers", "conjunctions"],
        "default": "all",
        "description": "which rules have operators; commands are always cut at conjunctions",
    },
    "operator": {
        "enum": ["linear", "mean"],
        "default": "linear",
        "description": "linear: ridge regression on the batch; mean: the prediction is the mean of the parts, nothing is fitted",
    },
    "target": {
        "enum": ["phrase", "shuffled", "norm"],
        "default": "phrase",
        "description": "what is predicted. phrase: the whole; as controls, shuffled: the whole of another phrase of the same "
        "rule; norm: nothing, R is the squared norm of r(whole), averaged over the width",
    },
    "normalize": {
        "enum": ["variance", "none"],
        "default": "variance",
        "description": "variance: errors are divided by the variance of r(whole); none: they are averaged over phrases and width",
    },
    "detach": {"enum": ["none", "whole"], "default": "none", "description": "whether r(whole) has no gradient"},
}
_KINDS = {"conjunctions": ("whole", "first", "second"), "modifiers": ("first", "stem")}  # per kind of rule: a whole, its parts
_RIDGE = 0.01  # times the mean squared norm of an operator's inputs
_LEAST = 1e-6  # lower bound of 1 - H_ii, which rounding can make 0
_FEWEST = 3  # a rule needs as many phrases
_HASH = 6364136223846793005  # Knuth's multiplier modulo 2^64 (The Art of Computer Programming 2, 3.3.4)


def _asked(parameters: dict) -> tuple[str, ...]:
    return tuple(kind for kind in _KINDS if parameters["rules"] in ("all", kind))


def prepare(parameters: dict, split: SequenceSplit) -> dict[str, Tensor]:
    """The tokens of the words that define rules, by kind of rule.

    Raises:
        ValueError: there is no rule, the task's inputs lack one of the words or contain study examples, or R has no gradient.
    """
    words = split.source.words
    if _STUDIES in words and (split.inputs == words.index(_STUDIES)).any(1).all():
        raise ValueError(f"homomorphism: inputs with study examples ({_STUDIES!r}) are not one phrase, so they have no parts")
    if parameters["target"] == "norm" and parameters["detach"] == "whole":
        raise ValueError("homomorphism: target: norm with detach: whole has no gradient; use detach: none")
    asked = {kind: list(parameters[kind]) for kind in _KINDS}
    if not any(asked[kind] for kind in _asked(parameters)):
        raise ValueError(
            f"homomorphism: rules: {parameters['rules']} needs a word in {' or '.join(_asked(parameters))}, which list none"
        )
    for kind, own in asked.items():
        if missing := [word for word in own if word not in words]:
            raise ValueError(
                f"homomorphism: {kind}: the task's inputs have no word {', '.join(missing)}; name some of "
                f"{', '.join(words[END + 1 :])}"
            )
    return {
        kind: torch.tensor([words.index(word) for word in own], dtype=torch.long, device=split.device)
        for kind, own in asked.items()
    }


@cache
def _without_outputs(inputs: Sequence[int], device: torch.device) -> Layout:
    """The layout for the given input lengths and outputs of one symbol, because the outputs of parts are not used.

    It is cached because a step that is recorded as a CUDA graph must not copy anything from the host.
    """
    return Layout([1] * len(inputs), inputs, device)


def parts(batch: Batch, tokens: dict[str, Tensor]) -> tuple[dict[str, Batch], dict[str, Tensor]]:
    """Parts of a batch's commands as batches with outputs of one symbol, and each row's rule.

    Returns:
        The parts "first" (up to the conjunction, if there is one), "second" (after the conjunction, or the whole command) and
        "stem" (the first part without its modifier); and for each kind of rule its token (R, B), or PAD if the command has none.
    """
    inputs, lengths = batch.inputs, batch.input_lengths
    place = torch.arange(inputs.shape[-1], device=inputs.device)
    joined = torch.isin(inputs, tokens["conjunctions"])
    has, at = joined.any(-1), joined.int().argmax(-1)
    end = torch.where(has, at, lengths - 1)  # the end of the first part, where its END is placed
    last = inputs.gather(-1, (end - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
    modified = torch.isin(last, tokens["modifiers"])
    joint = inputs.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    rules = {"conjunctions": torch.where(has, joint, PAD), "modifiers": torch.where(modified, last, PAD)}

    def part(begin: Tensor, end: Tensor) -> Batch:
        shifted = inputs.gather(-1, (begin.unsqueeze(-1) + place).clamp(max=inputs.shape[-1] - 1))
        stop = (end - begin).unsqueeze(-1)
        words = torch.where(place < stop, shifted, torch.where(place == stop, END, PAD))
        return replace(unanswered, inputs=words, input_mask=place <= stop, input_lengths=end - begin + 1)

    start = torch.zeros_like(end)
    unanswered = replace(
        batch,
        targets=torch.full_like(lengths, END),
        target_mask=torch.ones_like(lengths, dtype=torch.bool),
        previous=torch.full_like(lengths, START),
        layout=_without_outputs(batch.layout.inputs, inputs.device),
    )
    found = {
        "first": part(start, end),
        "second": part(torch.where(has, at + 1, 0), lengths - 1),
        "stem": part(start, end - modified.to(end.dtype)),
    }
    return found, rules


def mean_state(shown: Representation) -> Tensor:
    """r: the mean over valid positions, (R, B, S, D) -> (R, B, D).

    Raises:
        ValueError: the representation has no positions.
    """
    if shown.mask is None:
        raise ValueError(f"homomorphism: {shown.name} has no positions to take the mean of")
    valid = shown.mask.unsqueeze(-1)
    return (shown.values * valid).sum(2) / valid.sum(2)


def _inverse(matrices: Tensor) -> Tensor:
    """The inverses of positive definite matrices (R, B, B)."""
    factor = torch.linalg.cholesky_ex(matrices)[0]
    if not matrices.is_cuda:
        return torch.cholesky_inverse(factor)
    # On CUDA, `cholesky_inverse` cannot be recorded as part of a graph (seen with PyTorch 2.11).
    identity = torch.eye(matrices.shape[1], dtype=matrices.dtype, device=matrices.device)
    half = torch.linalg.solve_triangular(factor, identity.expand_as(matrices), upper=False)
    return half.transpose(1, 2) @ half


def left_out(inputs: Tensor, targets: Tensor, member: Tensor) -> Tensor:
    """Leave-one-out errors of ridge regression with an intercept on the members of a batch: each is predicted from the others.

    Args:
        inputs: (R, B, D), centered, zero for rows that are not members.
        targets: (R, B, E), likewise.
        member: (R, B), which rows are members.

    Returns:
        (R, B, E), zero for rows that are not members.
    """
    # The hat matrix is H = 1 / n + I - ridge G^-1 with G = K + ridge. The leave-one-out error of row i is its error divided by
    # 1 - H_ii. The term 1 / n is needed because centering used the row itself.
    products = inputs @ inputs.transpose(1, 2)
    trace, count = products.diagonal(dim1=1, dim2=2).sum(-1), member.sum(1).clamp(min=1)
    ridge = _RIDGE * trace / count
    ridge = torch.where(ridge > 0, ridge, 1.0)[:, None, None]
    identity = torch.eye(inputs.shape[1], dtype=inputs.dtype, device=inputs.device)
    rest = ridge * _inverse(products + ridge * identity)
    free = rest.diagonal(dim1=1, dim2=2) - 1 / count.unsqueeze(-1)
    return rest @ targets / free.clamp(min=_LEAST).unsqueeze(-1)


def _once(phrases: Tensor, member: Tensor) -> Tensor:
    """Members (R, B) whose phrase, tokens (R, B, S), no earlier member has: no phrase may be predicted from a copy of itself."""
    code = (phrases * phrases.new_full((phrases.shape[-1],), _HASH).cumprod(0)).sum(-1)
    same = code.unsqueeze(2) == code.unsqueeze(1)
    return member & ~(same.tril(-1) & member.unsqueeze(1)).any(-1)


def shuffled(step: Step, wholes: Tensor, member: Tensor) -> Tensor:
    """Wholes (R, B, D), randomly permuted among members."""
    noise = step.normal(torch.Size(member.shape[1:]))
    drawn = torch.where(member, noise, torch.inf).argsort(-1)
    places = torch.where(member, 0, 1).argsort(dim=-1, stable=True)
    order = torch.empty_like(places).scatter_(1, places, drawn)
    return wholes.gather(1, order.unsqueeze(-1).expand_as(wholes))


def _error(step: Step, wholes: Tensor, own: list[Tensor], member: Tensor) -> Tensor:
    """The error for one rule, (R,): wholes and each part (R, B, D), member (R, B)."""
    valid, count, options = member.unsqueeze(-1), member.sum(1).clamp(min=1), step.parameters

    def centered(values: Tensor) -> Tensor:
        return (values - (values * valid).sum(1, keepdim=True) / count[:, None, None]) * valid

    if options["detach"] == "whole":
        wholes = wholes.detach()
    if options["target"] == "norm":
        return (wholes.square().mean(-1) * member).sum(1) / count
    if options["target"] == "shuffled":
        wholes = shuffled(step, wholes, member)
    if options["operator"] == "mean":
        errors = (wholes - torch.stack(own).mean(0)) * valid
    else:
        errors = left_out(centered(torch.cat(own, -1)), centered(wholes), member)
    squares = errors.square().sum((1, 2))
    if options["normalize"] == "none":
        return squares / (count * wholes.shape[-1])
    return squares / centered(wholes.detach()).square().sum((1, 2)).clamp(min=torch.finfo(squares.dtype).tiny)


def penalty(step: Step[Batch]) -> Tensor:
    """R, (R,)."""
    found, rules = parts(step.batch, step.prepared)
    needed = 1 if step.parameters["target"] == "norm" else None  # the norm needs no parts
    chosen = {kind: _KINDS[kind][:needed] for kind in _asked(step.parameters) if len(step.prepared[kind])}
    # The main pass has already read the command itself, "whole".
    passes = sorted({name for names in chosen.values() for name in names} - {"whole"})
    shown = {name: step.again(found[name])[1] for name in passes} | {"whole": step.representations}
    states = {name: [mean_state(one) for one in own if one.name in REPRESENTATIONS] for name, own in shown.items()}

    phrases = {"whole": step.batch.inputs, "first": found["first"].inputs}

    def errors() -> Iterator[tuple[Tensor, Tensor]]:
        for kind, (whole, *others) in chosen.items():
            for token in step.prepared[kind]:
                member = _once(phrases[whole], rules[kind] == token)
                present = (member.sum(1) >= _FEWEST).to(step.active.dtype)
                for place, wholes in enumerate(states[whole]):
                    yield _error(step, wholes, [states[name][place] for name in others], member) * present, present

    values, present = (torch.stack(own) for own in zip(*errors(), strict=True))
    return values.sum(0) / present.sum(0).clamp(min=1)
