"""The output must not change when a component that must not matter is exchanged, and must follow when one that matters is.

Images: R = mean over the batch of |f(x1, x2) - f(x1, x2')|^2 (sum over outputs), x2' being the partner's right half. That
can be a combination of the test set, without its label; the control is `exchange: seen`, where x2' comes from an image of the
same label, so that the network sees only combinations that it is trained on.
Expressions: the same with the operands in reverse order, where that does not change their value.
Sequences: equivariance under exchanges pi of words of one type (compositional.language.lexicon), a fresh pi for each row.
`form: hard` is R = CE(p(. | pi x), pi y), summed over positions, mean over the batch; `form: soft` is the Jensen-Shannon
divergence between pi p(. | x) and p(. | pi x), reduced alike. A swap can produce inputs of the test set: for sequences this
is data augmentation in disguise, and the figures say so. The control is `exchange: virtual`: all words of a type are exchanged
for words that occur nowhere (the task's `virtual_words`), so that equivariance is asked for and no test input shown.
`exchange: terms` (logical forms; hard form) exchanges terms and the words that they name (language.logical_forms). Their
lengths differ, so the swapped batch is not the batch swapped: it is drawn like one from all training pairs, each under some
exchanges.
"""

from __future__ import annotations

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
PAIRED = True  # the examples of a batch, whose size must be even
PARAMETERS = {
    "form": {
        "enum": ["hard", "soft"],
        "default": "hard",
        "description": "sequences: cross entropy on swapped pairs, or Jensen-Shannon divergence",
    },
    "exchange": {
        "enum": ["lexicon", "virtual", "terms", "seen"],
        "default": "lexicon",
        "description": "sequences: words for others of their type, or for words that occur nowhere (`virtual_words` of a task); "
        "or terms of logical forms for others. Images: with any partner (lexicon), or with one of the same label (seen)",
    },
}
_OF_SEQUENCES, _OF_OTHERS = ("lexicon", "virtual", "terms"), ("lexicon", "seen")  # exchanges
_EXCHANGES = 20  # of terms, for each training pair; which ones is the same for every run


class _Swapped:
    """Training pairs under exchanges of terms, of which batches are drawn."""

    def __init__(self, split: SequenceSplit) -> None:
        pairs = logical_forms.exchanged(
            split.input_sentences(), split.output_sentences(), _EXCHANGES, randomness.generator(randomness.derive("terms"))
        )
        inputs, outputs = ([pair[side] for pair in pairs] for side in (0, 1))
        self.split = SequenceSplit(inputs, outputs, split.source, split.target, split.device)
        self.layouts: dict[int, Layout] = {}

    def draw(self, noise: Tensor) -> Batch:
        """A batch stratified as those of training are, from standard normal noise (R, B)."""
        size = noise.shape[1]
        if size not in self.layouts:  # in a pack's first step, which no graph records
            self.layouts[size] = self.split.training_layout(size)
        strata = torch.arange(size, device=noise.device) + torch.special.ndtr(noise)
        return self.split.batch((strata * (len(self.split) / size)).long().clamp(max=len(self.split) - 1), self.layouts[size])


def prepare(parameters: dict, split: Split) -> tuple[int, list[tuple[Tensor, Tensor, Tensor, Tensor]]] | _Swapped | None:
    """For sequences the number of input words, and of the lexicon's types as tokens: input words, what they are exchanged for,
    output symbols, what these are exchanged for. With `exchange: terms` the pairs under exchanges.

    Raises:
        ValueError: there is nothing to exchange, or too few words to exchange it for; terms in the soft form; or an exchange that
            is not for this kind of task.
    """
    what, allowed = ("sequences", _OF_SEQUENCES) if isinstance(split, SequenceSplit) else ("tasks of this kind", _OF_OTHERS)
    if (exchange := parameters["exchange"]) not in allowed:
        raise ValueError(f"recombination: exchange: {exchange} is not for {what}, which take {', '.join(allowed)}")
    if not isinstance(split, SequenceSplit):
        return None
    if parameters["exchange"] == "terms":
        if parameters["form"] == "soft":
            raise ValueError(
                "recombination: form: soft compares outputs of one length, exchange: terms changes it; use form: hard"
            )
        return _Swapped(split)
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
    """The batch under one random exchange a row, and each row's map of output symbols (R, B, symbols)."""
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
        if step.parameters["exchange"] == "virtual":  # no input has such words, but outputs may: an exchange goes both ways
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
    """(R,)."""
    batch = step.batch
    if not isinstance(batch, Batch):
        outputs, _ = step.again(batch.exchanged(step.parameters["exchange"]))
        return (step.outputs - outputs).square().sum(-1).mean(-1)
    rows = batch.inputs.shape[1]
    if isinstance(step.prepared, _Swapped):  # of the hard form alone
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
