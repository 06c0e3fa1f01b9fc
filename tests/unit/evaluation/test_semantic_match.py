"""Forms with the same meaning are recognized, and abandoning predictions early gives the same score as decoding everything."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.trained import weights_of

from compositional.evaluation import decoding, metrics, semantic_match
from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import Vocabulary
from compositional.training.loop import train_runs
from compositional.training.state import fresh_state

SLEEP = "* dog ( x _ 1 ) ; sleep . agent ( x _ 2 , x _ 1 )"
SEE = "see . agent ( x _ 1 , Emma ) AND see . theme ( x _ 1 , x _ 3 ) AND dog ( x _ 3 )"


@pytest.mark.parametrize(
    ("target", "found", "same"),
    [
        (SLEEP, "* dog ( x _ 7 ) ; sleep . agent ( x _ 0 , x _ 7 )", True),
        (SLEEP, "sleep . agent ( x _ 1 , x _ 2 ) AND * dog ( x _ 2 )", True),
        (SLEEP, "* dog ( x _ 1 ) ; sleep . agent ( x _ 1 , x _ 2 )", False),  # the variable of the dog is that of the event
        (SLEEP, "* dog ( x _ 1 ) ; sleep . agent ( x _ 2 , x _ 3 )", False),
        (SLEEP, "dog ( x _ 1 ) ; sleep . agent ( x _ 2 , x _ 1 )", False),  # the dog is not definite
        (SEE, "dog ( x _ 1 ) AND see . theme ( x _ 2 , x _ 1 ) AND see . agent ( x _ 2 , Emma )", True),
        (SEE, "dog ( x _ 1 ) AND see . theme ( x _ 2 , x _ 1 ) AND see . agent ( x _ 3 , Emma )", False),  # two events
        (SEE, SEE.replace("Emma", "Liam"), False),
        (SEE, f"{SEE} AND dog ( x _ 3 )", False),
        ("a ( x _ 1 , x _ 2 ) AND a ( x _ 2 , x _ 1 )", "a ( x _ 1 , x _ 1 ) AND a ( x _ 2 , x _ 2 )", False),
        ("LAMBDA a . dog ( a )", "LAMBDA b . dog ( b )", False),  # not a list of conjuncts, so texts must be identical
        ("Emma", "Emma", True),
        (SLEEP, "dog )", False),
    ],
)
def test_only_renaming_variables_and_reordering_conjuncts_keep_a_form_equal(target, found, same):
    assert semantic_match.equal(target, found) == same
    assert semantic_match.equal(found, target) == same


def test_abandoned_predictions_would_not_have_been_equal(monkeypatch):
    """The network writes the answers of a table as long as its previous symbols are the beginning of an answer."""
    written = {
        "a": (SLEEP, SLEEP),
        "b": (SLEEP, "* dog ( x _ 7 ) ; sleep . agent ( x _ 0 , x _ 7 )"),
        "c": (SEE, "dog ( x _ 1 ) AND see . theme ( x _ 2 , x _ 1 ) AND see . agent ( x _ 2 , Emma )"),
        "d": (SEE, SEE.replace("dog", "cat")),
        "e": (SEE, SEE.removesuffix(" AND dog ( x _ 3 )")),
        "f": (SLEEP, f"{SLEEP} AND dog ( x _ 1 )"),
        "g": (SEE, SEE.replace("x _ 3", "x _ 1")),
    }
    source, target = Vocabulary.of(list(written)), Vocabulary.of([form for pair in written.values() for form in pair])
    split = SequenceSplit(
        list(written),
        [wanted for wanted, _ in written.values()],
        source,
        target,
        "cpu",
        ["new/" + ("odd" if word in "ace" else "even") for word in written],
    )
    table = {source.words.index(word): target.encode([found])[0][0].tolist() for word, (_, found) in written.items()}
    asked = 0

    def forward(parameters, weights, batch, tap):
        nonlocal asked
        asked += 1
        single = batch.single()
        logits = torch.zeros(*single.previous.shape, len(target))
        for row, (inputs, previous) in enumerate(zip(single.inputs.tolist(), single.previous.tolist(), strict=True)):
            answer = table[inputs[0]]
            for step in range(len(previous)):
                follows = step < len(answer) and previous[1 : step + 1] == answer[:step]
                logits[row, step, answer[step] if follows else 0] = 1
        return batch.packed(logits)

    problem = SimpleNamespace(
        task="forms",
        about={"decoding": {"semantic": True}},
        splits={"test": split},
        model=SimpleNamespace(forward=forward, calibrate=None),
        model_parameters={},
    )
    weights = {"w": torch.zeros(1, 1)}
    monkeypatch.setattr(semantic_match, "_TOGETHER", 1)
    (found,) = semantic_match.scores(problem, weights)
    symbols = sum(len(table[source.words.index(word)]) for word in "bcdefg")
    assert asked < symbols  # one call per symbol: abandoned predictions are not completed
    (everything,) = decoding.predictions(problem, weights, "test", None)
    assert [text for _, _, text in everything] == [written[word][1] for word, _, _ in everything]
    right = {word: semantic_match.equal(wanted, text) for word, wanted, text in everything}
    assert right == {word: word in "abc" for word in written}
    assert found == pytest.approx(
        {
            ("test", "semantic exact match"): 3 / 7,
            ("test", "semantic exact match of new/odd"): 2 / 3,
            ("test", "semantic exact match of new/even"): 1 / 4,
        }
    )
    problem.about = {}
    assert semantic_match.scores(problem, weights) == [{}]


def test_a_network_knows_its_past_when_a_batch_of_candidates_shrinks(problem):
    case = problem("transformer", steps=60, record_every=60, learning_rate=0.003)
    state = fresh_state(case, 0, 0.0)
    train_runs(case, [state], metrics.measure)
    weights, split = weights_of(case, [state]), case.splits["train"]

    def forgets(parameters, weights, batch, tap):
        return case.model.forward(parameters, weights, replace(batch, past=None), tap)

    def written(case):
        targets = {row: split.targets[row].tolist()[: int(split.lengths[row])] for row in range(0, len(split), len(split) // 90)}
        found = {row: semantic_match._Candidate(target, list(range(len(split.target)))) for row, target in targets.items()}
        sizes.clear()
        semantic_match._decode(case, weights, split, found)
        return [one.symbols for one in found.values()]

    sizes = []
    whole = type(split).batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(split), "batch", lambda split, rows, layout: sizes.append(rows.shape[1]) or whole(split, rows, layout))
        assert written(case) == written(replace(case, model=replace(case.model, forward=forgets)))
    assert len(sizes) > 1
    assert sizes == sorted(sizes, reverse=True)
