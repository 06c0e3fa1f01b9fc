"""Episodes of meta-learning on SCAN: what they show, what they ask for, and how the pairwise transformer takes them apart."""

from __future__ import annotations

import torch
from support import small
from support.trained import untrained

from compositional.datasets import scan
from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import Vocabulary
from compositional.layers.functional import embedding
from compositional.layers.ragged import Chunks
from compositional.layers.tap import silent_tap
from compositional.models import pairwise_transformer, transformer
from compositional.plugins import defaults
from compositional.tasks import scan_jump_episodes, scan_jump_mlc

ACTIONS = dict(scan.commands())


def read(text: str) -> tuple[str, dict[str, str]]:
    """Query and study pairs of an input."""
    query, *pairs = text.split(" | ")
    return query, dict(pair.split(" means ") for pair in pairs)


def test_half_of_the_episodes_ask_for_a_primitive_that_the_input_shows():
    members, about = scan_jump_episodes.build(None, {"episodes": 100, "copies": True})
    rows = [*zip(members["train"]["input"], members["train"]["output"], strict=True)][50:]
    rows += zip(members["copies"]["input"], members["copies"]["output"], strict=True)
    for text, actions in rows:
        support, _, command = text.partition(" do ")
        assert f"{command} means {actions}" in support.split(" , ")
    assert about["in_distribution"] == "in_distribution"
    assert {len(members[name]) for name in ("in_distribution", "copies")} == {scan_jump_episodes.FRESH}


def test_mlc_copies_are_study_pairs_and_test_episodes_have_the_true_meanings_and_jump():
    members, _ = scan_jump_mlc.build(None, defaults("tasks.scan_jump_mlc") | {"episodes": 200, "pairs": 4})
    for text, actions in zip(members["copies"]["input"], members["copies"]["output"], strict=True):
        query, pairs = read(text)
        assert pairs[query] == actions
    for text, actions in zip(members["test"]["input"], members["test"]["output"], strict=True):
        query, pairs = read(text)
        assert pairs["jump"] == "I_JUMP"
        assert "jump" in query.split()
        assert query != "jump"
        assert actions == ACTIONS[query]
        assert all(ACTIONS[command] == meant for command, meant in pairs.items())
        assert all(command == "jump" or "jump" not in command.split() for command in pairs)


def test_mlc_training_permutes_words_and_symbols_apart_and_keeps_what_a_command_is_made_of():
    members, _ = scan_jump_mlc.build(None, defaults("tasks.scan_jump_mlc") | {"episodes": 400, "pairs": 2})
    texts, outputs = (members["train"][column][:400] for column in ("input", "output"))
    true = sum(ACTIONS.get(read(text)[0]) == actions for text, actions in zip(texts, outputs, strict=True))
    assert true < 0.2 * 400  # 5 %, and what permutations leave alone, such as turns alone
    # Permutations change no length: the number of words and of symbols is that of some command of SCAN.
    shapes = {(len(command.split()), len(actions.split())) for command, actions in ACTIONS.items()}
    assert {(len(read(text)[0].split()), len(actions.split())) for text, actions in zip(texts, outputs, strict=True)} <= shapes
    assert any("jump" in read(text)[0].split()[1:] for text in texts)  # jump in places that the published split never shows
    # Commands of one word, most of them "jump", become each of the six words, and their actions each of the six symbols.
    alone = [(read(text)[0], actions) for text, actions in zip(texts, outputs, strict=True) if " " not in read(text)[0]]
    assert [len(set(column)) for column in zip(*alone, strict=True)] == [6, 6]


def test_the_query_stands_before_every_pair_alone():
    text = "a b | c means X | d e f means Y Z"
    words = Vocabulary.of([text, "a | b means X | c means Y"])
    split = SequenceSplit([text, "a | b means X | c means Y"], ["X", "Y"], words, words, "cpu")
    ((_, batch),) = split.evaluation_batches(2, 16)
    separator, places = torch.tensor([[words.words.index("|")]] * 2), torch.arange(9).expand(2, -1)
    tokens, filled = pairwise_transformer.parted(batch, separator, places, 2)
    found = [
        [words.decode(row[keep].tolist()) for row, keep in zip(*pair, strict=True)]
        for pair in zip(tokens[1], filled[1], strict=True)
    ]
    assert found[:2] == [["a b | c means X", "a b | d e f means Y Z"], ["a | b means X", "a | c means Y"]]
    assert not tokens[~filled].any()


def test_the_states_of_a_pair_are_those_of_the_query_with_it_alone_plus_the_vector_of_its_place():
    case, shown = small.problem("pairwise_transformer"), {}
    weights, options = untrained(case), case.model_parameters
    _, batch = case.splits["test"].evaluation_batches(1, 16, 16)[0]

    def tap(name, values, mask):
        shown[name] = values
        return values

    case.model.forward(options, weights, batch, tap)
    pairs, width = weights["pair_embedding"].shape[1:]
    tokens, filled = pairwise_transformer.parted(batch, weights["separator"], weights["places"], pairs)
    states = shown["command_states"].view(*tokens.shape[:3], -1, width)
    for row, pair in ((0, 0), (5, 1), (15, 0)):
        words = embedding(tokens[:, row, pair, filled[0, row, pair]], weights["input_embedding"])[:, None]
        mask, count = torch.ones(words.shape[:3], dtype=torch.bool), words.shape[2]
        alone = transformer.encode(options, weights, words, mask, Chunks((1,), (count + 1,)), silent_tap).states
        expected = alone + weights["pair_embedding"][:, pair]
        torch.testing.assert_close(states[:, row, pair, : count + 1], expected, atol=1e-5, rtol=1e-5)
