"""Exact match of COGS' forms up to differences without meaning: the names of variables and the order of conjuncts.

The score follows ReCOGS (Wu, Manning and Potts, TACL 2024), whose forms also have other names of variables in training and fewer
symbols. Two forms are equal if a one-to-one renaming of variables makes their multisets of conjuncts the same. Equal forms
therefore have equally many symbols of every kind, where all numbers are of one kind. A prediction that can no longer satisfy this
is abandoned. Little is left to decode, and the score is the same as when everything is decoded greedily.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import networkx
import torch
from torch import Tensor

from compositional.evaluation.decoding import next_symbols, sentences
from compositional.evaluation.metrics import BATCH, by_category, calibrated
from compositional.kinds.sequence import Batch, SequenceSplit
from compositional.language.vocabulary import END
from compositional.layers.ragged import ROWS, Layout
from compositional.layers.tap import silent_tap
from compositional.training.problem import Problem

METRIC = "semantic exact match"
_TOGETHER = 256  # maximum number of predictions that are decoded together
_NUMBER, _AND = -1, -2  # the kinds of all numbers, which only name variables, and of both separators of conjuncts


def _graph(form: str) -> networkx.Graph | None:
    """The graph of conjuncts and variables; an edge states a variable's places in a conjunct. None: not a list of conjuncts."""
    graph = networkx.Graph()
    for place, conjunct in enumerate(form.replace(" ; ", " AND ").split(" AND ")):
        predicate, opening, rest = conjunct.partition(" ( ")
        if not opening or not rest.endswith(" )"):
            return None
        arguments = rest.removesuffix(" )").split(" , ")
        is_variable = [argument.startswith("x _ ") for argument in arguments]
        named = ("x" if hidden else argument for argument, hidden in zip(arguments, is_variable, strict=True))
        graph.add_node(place, says=(predicate, *named))
        for variable in {argument for argument, hidden in zip(arguments, is_variable, strict=True) if hidden}:
            graph.add_node(variable, says=())
            graph.add_edge(place, variable, at=[argument == variable for argument in arguments])
    return graph


def equal(target: str, found: str) -> bool:
    """Whether two forms are the same after renaming variables and reordering conjuncts; other texts must be identical."""
    if target == found:
        return True
    graphs = _graph(target), _graph(found)
    if any(graph is None for graph in graphs):
        return False
    says = [Counter(says for _, says in graph.nodes(data="says")) for graph in graphs if graph is not None]
    return says[0] == says[1] and networkx.is_isomorphic(
        *graphs, node_match=lambda a, b: a["says"] == b["says"], edge_match=lambda a, b: a["at"] == b["at"]
    )


class _Candidate:
    """A prediction for one example, built symbol by symbol, that may still be equal to its target."""

    def __init__(self, target: list[int], kinds: list[int]) -> None:
        self.kinds, self.target, self.symbols = kinds, target, list[int]()
        self.left = Counter(kinds[symbol] for symbol in target)
        self.alive = True

    def add(self, symbol: int) -> None:
        """Append a symbol. Abandon the prediction if no such symbol is left, or if it ends before all symbols have occurred."""
        kind = self.kinds[symbol]
        self.alive = self.left[kind] > 0 and (symbol != END or self.left.total() == 1)
        self.left[kind] -= 1
        self.symbols.append(symbol)

    @property
    def ended(self) -> bool:
        return not self.alive or self.symbols[-1:] == [END]


def _candidates(
    problem: Problem, weights: dict[str, Tensor], split: SequenceSplit, kinds: list[int]
) -> tuple[Tensor, dict[int, _Candidate]]:
    """For one run: which examples are right, (n,), and the others that may still be equal after their first wrong symbol."""
    right, found = [], {}
    for rows, batch in split.evaluation_batches(1, BATCH):
        with torch.no_grad():
            logits = problem.model.forward(problem.model_parameters, weights, batch, silent_tap)
        correct = batch.correct(logits)[0, : len(rows)].cpu()
        right.append(correct)
        written = [row for chunk in batch.layout.chunks(logits.argmax(-1)) for row in chunk[0].tolist()]
        for row, known, symbols in zip(rows.tolist(), correct.tolist(), written, strict=False):
            if known:
                continue
            target = split.targets[row].tolist()[: int(split.lengths[row])]
            candidate = _Candidate(target, kinds)
            for wanted, symbol in zip(target, symbols, strict=False):
                candidate.add(symbol)
                if wanted != symbol or not candidate.alive:
                    break
            if not candidate.ended:
                found[row] = candidate
    return torch.cat(right), found


def _decode(problem: Problem, weights: dict[str, Tensor], split: SequenceSplit, found: dict[int, _Candidate]) -> None:
    """Decode the candidates of one run greedily until all have ended. What is known of them is read, not decoded."""

    def filled(places: list[int]) -> list[int]:
        return places + places[-1:] * (-len(places) % ROWS)

    def batch_of(rows: list[int], past: dict[str, Tensor]) -> Batch:
        several = torch.tensor(rows)
        layout = Layout(split.lengths[several].tolist(), split.input_lengths.cpu()[several].tolist(), split.device)
        return replace(split.batch(several.to(split.device).unsqueeze(0), layout), kept={}, past=past)

    for start in range(0, len(found), _TOGETHER):
        rows = filled([*found][start : start + _TOGETHER])
        batch, decoded = batch_of(rows, {}), torch.empty(1, len(rows), 0, dtype=torch.long, device=split.device)
        while going := [place for place, row in enumerate(rows) if not found[row].ended]:
            places = filled(going)
            if 2 * len(places) <= len(rows):
                rows, decoded = [rows[place] for place in places], decoded[:, places]
                batch = batch_of(rows, {name: values[:, places] for name, values in (batch.past or {}).items()})
            step, symbols = decoded.shape[2], next_symbols(problem, weights, batch, decoded).argmax(-1)[0].tolist()
            for row, symbol in zip(rows, symbols, strict=True):
                if len(found[row].symbols) == step and not found[row].ended:
                    found[row].add(symbol)
            following = [(found[row].symbols[step:] or [END])[0] for row in rows]
            decoded = torch.cat([decoded, decoded.new_tensor(following).view(1, -1, 1)], 2)


def scores(problem: Problem, weights: dict[str, Tensor]) -> list[dict[tuple[str, str], float]]:
    """For each run {(split, metric): value} on every split but the training set, with every category of the test set.

    It is empty unless the task's "decoding" in task.json contains {"semantic": true}.
    """
    runs = next(iter(weights.values())).shape[0]
    results: list[dict[tuple[str, str], float]] = [{} for _ in range(runs)]
    if not problem.about.get("decoding", {}).get("semantic"):
        return results
    weights = calibrated(problem, weights)
    for name in sorted(problem.splits.keys() - {"train"}):
        split = sentences(problem, name)
        words = enumerate(split.target.words)
        kinds = [_NUMBER if word.isdecimal() else _AND if word in ("AND", ";") else number for number, word in words]
        for run, result in enumerate(results):
            own = {key: values[run : run + 1] for key, values in weights.items()}
            right, found = _candidates(problem, own, split, kinds)
            _decode(problem, own, split, found)
            for row, one in found.items():
                right[row] = one.alive and equal(split.target.decode(one.target), split.target.decode(one.symbols))
            result[name, METRIC] = right.double().mean().item()
            if split.categories is not None:
                (of,) = by_category(right.unsqueeze(0), split.categories)
                result |= {(name, f"{METRIC} of {category}"): value for category, value in of.items()}
    return results
