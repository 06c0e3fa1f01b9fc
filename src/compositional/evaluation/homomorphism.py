"""Whether networks represent SCAN's commands by their parts: `compositional.measures.homomorphism` on trained networks.

The rules are conjunctions of two phrases ("and", "after") and modifiers of one phrase ("twice", "thrice"). A phrase is
represented by the mean over positions of what the network shows when it reads only this phrase. Operators are fitted to phrases
of training commands and evaluated on phrases that occur only in test commands.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from compositional.evaluation import activations, stimuli
from compositional.kinds.sequence import SequenceSplit
from compositional.measures import homomorphism
from compositional.measures.compositionality import Measure
from compositional.training.problem import Problem

CONJUNCTIONS = ("and", "after")
MODIFIERS = ("twice", "thrice")
PHRASES = 200  # per rule, for seen and for held-out ones, evenly spaced in alphabetical order
FEWEST = 5  # seen phrases, and held-out ones, that a rule needs to be measured
Whole = tuple[str, ...]  # a phrase and its parts


def derivations(command: str) -> Iterator[tuple[str, Whole]]:
    """Every (rule, (whole, *parts)) in a command: "walk twice and run" is a whole of "and", its "walk twice" one of "twice"."""
    words = command.split()
    halves = [command]
    if rule := next((word for word in words if word in CONJUNCTIONS), None):
        place = words.index(rule)
        halves = [" ".join(words[:place]), " ".join(words[place + 1 :])]
        yield rule, (command, *halves)
    for half in halves:
        stem, _, last = half.rpartition(" ")
        if last in MODIFIERS:
            yield last, (half, stem)


def _wholes(sentences: list[str]) -> dict[str, set[Whole]]:
    found: dict[str, set[Whole]] = {rule: set() for rule in (*CONJUNCTIONS, *MODIFIERS)}
    for sentence in sentences:
        for rule, whole in derivations(sentence):
            found[rule].add(whole)
    return found


def _some(wholes: set[Whole]) -> list[Whole]:
    ordered = sorted(wholes)
    return [ordered[place] for place in stimuli.spaced(len(ordered), PHRASES)]


def _chosen(problem: Problem) -> dict[str, tuple[list[Whole], list[Whole]]]:
    """By rule: wholes that occur in training, and others that occur only in the test set; only rules with enough of both."""
    members = [problem.splits[name] for name in ("train", "test")]
    shown, others = (_wholes(member.input_sentences()) for member in members if isinstance(member, SequenceSplit))
    held_out = {rule: wholes - shown[rule] for rule, wholes in others.items()}
    return {
        rule: (_some(shown[rule]), _some(held_out[rule]))
        for rule in shown
        if min(len(shown[rule]), len(held_out[rule])) >= FEWEST
    }


def measure(problem: Problem, weights: dict[str, Tensor]) -> list[dict[str, float]]:
    """The held-out error of every rule and its mean over rules, for every run and every representation except word embeddings.

    Two errors for comparison: the error in distribution, and the held-out error of predicting the mean of the parts, which needs
    no fit. Empty for tasks whose inputs are not SCAN's commands, and if no rule has wholes that occur only in the test set.

    Args:
        weights: (R, ...) by name.
    """
    runs = next(iter(weights.values())).shape[0]
    chosen = _chosen(problem) if stimuli.phrases(problem, runs) else {}
    if not chosen:
        return [{} for _ in range(runs)]
    phrases = sorted({phrase for both in chosen.values() for wholes in both for whole in wholes for phrase in whole})
    places = {phrase: place for place, phrase in enumerate(phrases)}
    # By rule: the places of every whole and of its parts, with the seen ones first, and the number of seen ones.
    rules = {
        rule: (np.array([[places[phrase] for phrase in whole] for whole in (*seen, *held_out)]), len(seen))
        for rule, (seen, held_out) in chosen.items()
    }
    found: list[dict[str, float]] = [{} for _ in range(runs)]
    train = problem.splits["train"]
    assert isinstance(train, SequenceSplit)
    probe = stimuli.Stimuli(phrases, stimuli.of_commands(train, runs, phrases), None, (), np.empty(0))
    for name, shown in activations.on_stimuli(problem, weights, probe).items():
        if name.startswith("word_embedding"):
            continue
        for run in range(runs):
            errors: list[Measure] = []
            beside = []
            for rule, (rows, count) in rules.items():
                wholes, parts = shown[run][rows[:, 0]], shown[run][rows[:, 1:]]
                known, joined = np.arange(len(rows)) < count, parts.reshape(len(rows), -1)
                errors.append(homomorphism.held_out_error(joined, wholes, known))
                found[run] |= errors[-1].rows(f"homomorphism_error of {rule} in {name}")
                inside = homomorphism.seen_error(joined[known], wholes[known])
                beside.append((inside, homomorphism.relative_error(wholes[~known], parts[~known].mean(1))))
            found[run] |= Measure.mean(errors).rows(f"homomorphism_error in {name}")
            for label, value in zip(("in_distribution", "of_mean"), np.mean(beside, 0), strict=True):
                found[run][f"homomorphism_error_{label} in {name}"] = float(value)
    return found
