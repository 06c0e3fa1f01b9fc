"""Decoding without access to the target, greedily or by beam search, and decoded predictions for people to read.

Exact match of greedy decoding does not need this module (`kinds.sequence.Batch.correct`); beam search and scores of the complete
text (BLEU) do. Each step is one pass over everything decoded so far: simple, and right for every sequence model. A model can
skip what it knows from the steps before or what is not wanted (`kinds.sequence.Batch`), as this project's own models do, except
for those that are a `Network`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional.evaluation import readings
from compositional.evaluation.metrics import calibrated
from compositional.kinds.sequence import Batch, SequenceSplit
from compositional.language import adjectives
from compositional.language.vocabulary import END, PAD, START
from compositional.layers.ragged import ROWS, Layout
from compositional.layers.tap import silent_tap
from compositional.training.problem import Problem

WORD_MARK = "\N{LOWER ONE EIGHTH BLOCK}"  # starts the first subword of every word


def room(longest: int) -> int:
    """The largest number of symbols in a prediction, including the end symbol, given the longest target of its batch.

    It is large enough that longer predictions are always wrong, and bounds predictions that never end.
    """
    return longest + longest // 5 + 5


def next_symbols(problem: Problem, weights: dict[str, Tensor], batch: Batch, decoded: Tensor) -> Tensor:
    """Log probabilities of the symbol that follows `decoded` (R, B, t): (R, B, symbols).

    A batch with a `past` must be passed at every step in turn, from t = 0 on.
    """
    runs, rows, steps = decoded.shape
    started = torch.cat([decoded.new_full((runs, rows, 1), START), decoded], -1)
    layout = Layout((steps + 1,) * rows, batch.layout.inputs, decoded.device)
    asked = replace(batch, previous=started.flatten(1), layout=layout, kept={} if batch.kept is None else batch.kept)
    with torch.no_grad():
        logits = problem.model.forward(problem.model_parameters, weights, asked, silent_tap)
    # Of every position, or only of the last ones.
    return logits.view(runs, rows, -1, logits.shape[-1])[:, :, -1].log_softmax(-1)


def decode_greedily(problem: Problem, weights: dict[str, Tensor], batch: Batch, limit: int) -> Tensor:
    """Decode the likeliest symbols one after the other: (R, B, `limit`). After <end>, a row has padding.

    A row that is correct under teacher forcing is also what greedy decoding writes, so such rows need no decoding.
    """
    with torch.no_grad():
        ended = batch.correct(problem.model.forward(problem.model_parameters, weights, batch, silent_tap))
    targets = batch.layout.chunks(batch.targets.masked_fill(~batch.target_mask, PAD))
    decoded = torch.cat([functional.pad(chunk, (0, limit - chunk.shape[2])) for chunk in targets], 1)
    decoded *= ended.unsqueeze(2)
    batch = replace(batch, kept={}, past={})
    step = 0
    while step < limit and not ended.all():
        symbols = next_symbols(problem, weights, batch, decoded[..., :step]).argmax(-1)
        decoded[..., step] = torch.where(ended, decoded[..., step], symbols)
        ended |= symbols == END
        step += 1
    return decoded


def decode_by_beam(problem: Problem, weights: dict[str, Tensor], batch: Batch, limit: int, beam: int) -> Tensor:
    """The best of `beam` hypotheses by log probability divided by length, (R, B, at most `limit`). After <end> comes padding.

    The length includes <end>. A hypothesis that has ended stays in the beam until `beam` others are better.
    """
    runs, rows = batch.input_lengths.shape
    several = replace(
        batch,
        **{name: getattr(batch, name).repeat_interleave(beam, 1) for name in ("inputs", "input_mask", "input_lengths")},
        layout=Layout(
            np.repeat(batch.layout.targets, beam).tolist(), np.repeat(batch.layout.inputs, beam).tolist(), batch.inputs.device
        ),
        kept={},
        past={},
    )
    decoded = several.inputs[..., :0]
    ended = torch.zeros_like(several.input_lengths, dtype=torch.bool)
    lengths = torch.zeros_like(several.input_lengths)
    # At first all hypotheses of an example are equal, so only one of them counts.
    scores = torch.full((runs, rows, beam), float("-inf"), device=batch.inputs.device)
    scores[..., 0] = 0.0
    of_run = torch.arange(runs, device=scores.device).unsqueeze(1)
    while decoded.shape[2] < limit and not ended.all():
        following = next_symbols(problem, weights, several, decoded)
        # Hypotheses that have ended continue with padding, at no cost.
        following = following.masked_fill(ended.unsqueeze(-1), float("-inf"))
        following[..., PAD] = torch.where(ended, 0.0, float("-inf"))
        vocabulary = following.shape[-1]
        totals = scores.unsqueeze(-1) + following.view(runs, rows, beam, -1)
        grown = (lengths + ~ended).view(runs, rows, beam, 1)
        chosen = (totals / grown).flatten(2).topk(beam, -1).indices
        scores = totals.flatten(2).gather(2, chosen)
        parent = (chosen // vocabulary + torch.arange(rows, device=chosen.device).view(1, -1, 1) * beam).flatten(1)
        symbols = (chosen % vocabulary).flatten(1)
        decoded = decoded.gather(1, parent.unsqueeze(-1).expand(-1, -1, decoded.shape[2]))
        decoded = torch.cat([decoded, symbols.unsqueeze(-1)], -1)
        several = replace(several, past={name: values[of_run, parent] for name, values in (several.past or {}).items()})
        lengths, ended = grown.flatten(1).gather(1, parent), ended.gather(1, parent) | (symbols == END)
    best = (scores / lengths.view(runs, rows, beam)).argmax(-1, keepdim=True).unsqueeze(-1)
    return decoded.view(runs, rows, beam, -1).gather(2, best.expand(-1, -1, -1, decoded.shape[2])).squeeze(2)


def sentences(problem: Problem, member: str) -> SequenceSplit:
    """A member of a task whose examples are sentences.

    Raises:
        TypeError: the member is of another kind.
    """
    split = problem.splits[member]
    if not isinstance(split, SequenceSplit):
        raise TypeError(f"{member} of {problem.task!r} has no sentences, it is a {type(split).__name__}")
    return split


def predictions(
    problem: Problem, weights: dict[str, Tensor], split: str, examples: int | None, beam: int = 1
) -> list[list[tuple[str, str, str]]]:
    """For each run rows (input, target, prediction) as text, of all or of evenly spaced examples of a sequence split."""
    data, runs = sentences(problem, split), next(iter(weights.values())).shape[0]
    weights = calibrated(problem, weights)
    rows_of: list[list[tuple[str, str, str]]] = [[] for _ in range(runs)]
    for rows, batch in data.evaluation_batches(runs, ROWS, examples):
        limit = room(batch.layout.targets[0])
        given = problem, weights, batch, limit
        decoded = decode_greedily(*given) if beam == 1 else decode_by_beam(*given, beam)
        asked = [
            (data.source.decode(data.inputs[row].tolist()), data.target.decode(data.targets[row].tolist()))
            for row in rows.tolist()
        ]
        for found, symbols in zip(rows_of, decoded.tolist(), strict=True):
            found += [(*pair, data.target.decode(own)) for pair, own in zip(asked, symbols, strict=False)]
    return rows_of


def scores(problem: Problem, weights: dict[str, Tensor]) -> list[dict[tuple[str, str], float]]:
    """For each run {(split, metric): value} of the metrics that need decoding, as requested by "decoding" in task.json.

    {"beam": number of hypotheses, "bleu": whether sentences are text, made of subwords, "words" or, if "raw", of subwords of raw
    text, "brackets": whether to repair brackets as in `readings`, too}; nothing is decoded without "beam". Metrics: accuracy_beam
    (exact match by beam search), bleu (sacrebleu's default, on text that is joined from subwords) and "accuracy, brackets
    repaired", on every split except the training set. For raw text, bleu is also given under its sacrebleu signature, next to
    "bleu, lower-cased tokens".
    """
    results: list[dict[tuple[str, str], float]] = [{} for _ in range(next(iter(weights.values())).shape[0])]
    asked = problem.about.get("decoding")
    if not asked or "beam" not in asked:
        return results
    for split in sorted(problem.splits.keys() - {"train"}):
        for result, rows in zip(results, predictions(problem, weights, split, None, asked["beam"]), strict=True):
            result[split, "accuracy_beam"] = sum(target == found for _, target, found in rows) / len(rows)
            if asked["bleu"] == "raw":
                result |= {(split, metric): value for metric, value in _bleu_of_raw_text(rows).items()}
            elif asked["bleu"]:
                result[split, "bleu"] = _bleu(rows, asked["bleu"] == "words")
            if asked.get("brackets"):
                right = sum(target == readings.repaired(found) for _, target, found in rows)
                result[split, "accuracy, brackets repaired"] = right / len(rows)
    return results


def join_subwords(sentence: str) -> str:
    """Join subwords separated by spaces into text. A subword that starts a word starts with the mark."""
    return sentence.replace(" ", "").replace(WORD_MARK, " ").strip()


def _bleu_of_raw_text(rows: list[tuple[str, str, str]]) -> dict[str, float]:
    """Corpus BLEU in percent of rows in subwords of raw text, as sacrebleu tokenizes it (13a, case kept), by "bleu" and by its
    signature; and between words and marks in lower case, which is nearer to what papers on Multi30k report."""
    from sacrebleu.metrics import BLEU

    targets, found = ([join_subwords(row[column]) for row in rows] for column in (1, 2))
    standard = BLEU()
    score = standard.corpus_score(found, [targets]).score
    tokens = [[" ".join(adjectives.words(text)) for text in side] for side in (found, targets)]
    lower = BLEU(tokenize="none", force=True).corpus_score(tokens[0], [tokens[1]]).score
    return {"bleu": score, f"bleu {standard.get_signature()}": score, "bleu, lower-cased tokens": lower}


def _bleu(rows: list[tuple[str, str, str]], words: bool) -> float:
    """Corpus BLEU in percent (Papineni et al. 2002; Post 2018) of rows (input, target, prediction).

    The data are already tokenized, so sacrebleu does not tokenize them. words: symbols between spaces are words instead of
    subwords, and all targets of an input are references for each of its rows.
    """
    from sacrebleu.metrics import BLEU

    if not words:
        targets, found = ([join_subwords(row[column]) for row in rows] for column in (1, 2))
        return BLEU(tokenize="none", force=True).corpus_score(found, [targets]).score
    of: dict[str, list[str]] = {}
    for source, target, _ in rows:
        of.setdefault(source, []).append(target)
    references = zip_longest(*(of[source] for source, _, _ in rows))
    return BLEU(tokenize="none", force=True).corpus_score([found for _, _, found in rows], list(references)).score
