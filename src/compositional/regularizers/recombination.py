"""When an irrelevant component is exchanged, the output should stay the same; when a relevant one is, it should change likewise.

Images: R = mean over the batch of |f(x1, x2) - f(x1, x2')|^2 (summed over outputs), where x2' is the partner's right half. The
new image can be a combination of the test set, without its label. The control is `exchange: seen`: x2' comes from an image of the
same label, so that the network sees only combinations on which it is trained.

Expressions: the same, with the operands in reverse order if that does not change the value.

Sequences: equivariance under exchanges pi of words of the same type (`language.lexicon`), with a new pi for each row.
`form: hard` is R = CE(p(. | pi x), pi y), summed over positions and averaged over the batch. `form: soft` is the Jensen-Shannon
divergence between pi p(. | x) and p(. | pi x), reduced in the same way. A swap can produce inputs of the test set: for sequences
the term is data augmentation in disguise, and the figures state this. The control is `exchange: virtual`: all words of a type are
exchanged for words that occur nowhere (the task's `virtual_words`). It enforces equivariance without showing a test input.

`exchange: terms` (logical forms, hard form only) exchanges terms and the words that they name (`language.logical_forms`). This
changes lengths. The batch is therefore not swapped itself: a second batch is drawn from all training pairs, to which random
exchanges have been applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds import Recombined, Split
from compositional.kinds.sequence import Batch, SequenceSplit
from compositional.language import lexicon, logical_forms
from compositional.layers.functional import divergence
from compositional.layers.ragged import Layout
from compositional.regularizers import Step

APPLIES_TO = ("sequence", "image", "sequence_regression")
REPRESENTATIONS: tuple = ()
PAIRED = True  # it pairs the examples of a batch, so the batch size must be even
PARAMETERS = {
    "form": {
        "enum": ["hard", "soft"],
        "default": "hard",
        "description": "sequences: hard: cross entropy on swapped pairs; soft: Jensen-Shannon divergence",
    },
    "exchange": {
        "enum": ["lexicon", "virtual", "terms", "seen"],
        "default": "lexicon",
        "description": "sequences: words are exchanged for others of their type (lexicon) or for words that occur nowhere "
        "(virtual; needs the task's `virtual_words`), or terms of logical forms for other terms (terms). Images: the partner is "
        "any image (lexicon) or one of the same label (seen)",
    },
}
_OF_SEQUENCES, _OF_OTHERS = ("lexicon", "virtual", "terms"), ("lexicon", "seen")  # exchanges
_EXCHANGES = 20  # exchanges of terms per training pair, the same for every run


class _Swapped:
    """Training pairs after exchanges of terms, from which batches are drawn."""

    def __init__(self, split: SequenceSplit, exchanged: Callable[..., list[tuple[str, str]]]) -> None:
        """exchanged: like `logical_forms.exchanged`."""
        source = randomness.generator(randomness.derive("terms"))
        pairs = exchanged(split.input_sentences(), split.output_sentences(), _EXCHANGES, source)
        inputs, outputs = ([pair[side] for pair in pairs] for side in (0, 1))
        self.split = SequenceSplit(inputs, outputs, split.source, split.target, split.device)
        self.layouts: dict[int, Layout] = {}

    def draw(self, noise: Tensor) -> Batch:
        """A batch, stratified like training batches, from standard normal noise (R, B)."""
        size = noise.shape[1]
        if size not in self.layouts:  # in a pack's first step, which is not part of a CUDA graph
            self.layouts[size] = self.split.training_layout(size)
        strata = torch.arange(size, device=noise.device) + torch.special.ndtr(noise)
        return self.split.batch((strata * (len(self.split) / size)).long().clamp(max=len(self.split) - 1), self.layouts[size])


def prepare(parameters: dict, split: Split) -> tuple[int, list[tuple[Tensor, Tensor, Tensor, Tensor]]] | _Swapped | None:
    """Prepare the exchanges.

    Returns:
        For sequences, the number of input words and, for each type of the lexicon, four tensors of tokens: input words and their
        replacements, output symbols and their replacements. With `exchange: terms`, the training pairs after exchanges. Otherwise
        None.

    Raises:
        ValueError: there is nothing to exchange, the task has too few virtual words, `form: soft` is combined with
            `exchange: terms` or with inputs that are no sequences, or the exchange does not fit this kind of task.
    """
    what, allowed = ("sequences", _OF_SEQUENCES) if isinstance(split, SequenceSplit) else ("tasks of this kind", _OF_OTHERS)
    if (exchange := parameters["exchange"]) not in allowed:
        raise ValueError(f"recombination: exchange: {exchange} is not for {what}, which take {', '.join(allowed)}")
    if not isinstance(split, SequenceSplit):
        if parameters["form"] == "soft":
            raise ValueError("recombination: form: soft compares the symbols of sequences; use form: hard")
        return None
    if parameters["exchange"] == "terms":
        if parameters["form"] == "soft":
            raise ValueError(
                "recombination: form: soft compares outputs of one length, exchange: terms changes it; use form: hard"
            )
        return _Swapped(split, logical_forms.exchanged)
    types = lexicon.infer(split.input_sentences(), split.output_sentences())
    if not types:
        raise ValueError("recombination: the training pairs have no two words that may be exchanged")
    others = types
    if parameters["exchange"] == "virtual":
        words = lexicon.virtual_words(sum(map(len, types)))
        if missing := [word for word in words if word not in split.source.words]:
            raise ValueError(
                f"recombination: exchange: virtual needs {len(words)} virtual words, of which the task lacks {len(missing)}; set "
                "its option virtual_words"
            )
        spare = iter(words)
        others = [[(word, word) for word in islice(spare, len(members))] for members in types]

    def tokens(members: list[tuple[str, str]], side: int) -> Tensor:
        vocabulary = (split.source, split.target)[side]
        return torch.tensor([vocabulary.words.index(entry[side]) for entry in members], device=split.device)

    return len(split.source), [
        (tokens(own, 0), tokens(other, 0), tokens(own, 1), tokens(other, 1)) for own, other in zip(types, others, strict=True)
    ]


def _exchange(step: Step, batch: Batch) -> tuple[Batch, Tensor]:
    """The batch after one random exchange per row, and each position's map of output symbols (R, N, symbols)."""
    runs, rows = batch.inputs.shape[:2]
    device = batch.inputs.device
    source_size, types = step.prepared
    source_map = torch.arange(source_size, device=device).repeat(runs, rows, 1)
    target_map = torch.arange(step.outputs.shape[-1], device=device).repeat(runs, rows, 1)
    for words, other_words, symbols, other_symbols in types:
        # Sorting independent noise gives a uniformly random permutation.
        permutation = step.normal(torch.Size((rows, len(words)))).argsort(-1)
        source_map[..., words] = other_words[permutation]
        target_map[..., symbols] = other_symbols[permutation]
        if step.parameters["exchange"] == "virtual":  # no input has virtual words, but predictions may: map them back
            target_map.scatter_(2, other_symbols[permutation], symbols.expand_as(permutation))
    at_positions = target_map[:, batch.layout.positions[:, 0]]

    def follow(tokens: Tensor) -> Tensor:
        return at_positions.gather(2, tokens.unsqueeze(-1)).squeeze(-1)

    swapped = replace(
        batch,
        inputs=source_map.gather(2, batch.inputs),
        targets=follow(batch.targets),
        previous=follow(batch.previous),
    )
    return swapped, at_positions


def penalty(step: Step[Batch | Recombined]) -> Tensor:
    """R, (R,)."""
    batch = step.batch
    if not isinstance(batch, Batch):
        outputs, _ = step.again(batch.exchanged(step.parameters["exchange"]))
        return (step.outputs - outputs).square().sum(-1).mean(-1)
    rows = batch.inputs.shape[1]
    if isinstance(step.prepared, _Swapped):  # the hard form only
        swapped = step.prepared.draw(step.normal(torch.Size((rows,))))
        return swapped.losses(step.again(swapped)[0], "cross_entropy").sum(1) / rows
    swapped, at_positions = _exchange(step, batch)
    outputs, _ = step.again(swapped)
    if step.parameters["form"] == "hard":
        return swapped.losses(outputs, "cross_entropy").sum(1) / rows
    # p(pi(symbol) | pi x) against p(symbol | x).
    ours = step.outputs.log_softmax(-1)
    theirs = outputs.log_softmax(-1).gather(2, at_positions)
    return (divergence(ours, theirs) * batch.target_mask).sum(1) / rows
