"""SCAN (Lake and Baroni, ICML 2018): every command of its grammar with its actions, generated, no download."""

from __future__ import annotations

from itertools import product

FILES: dict = {}

ACTIONS = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
REPEATS = {"": 1, "twice": 2, "thrice": 3}


def _phrases() -> dict[str, list[str]]:
    """Commands without "twice", "and", ...: an action, or an action (or "turn") in a direction, each with its actions."""
    phrases = {verb: [action] for verb, action in ACTIONS.items()}
    for verb, direction in product((*ACTIONS, "turn"), TURNS):
        turn = [TURNS[direction]]
        act = [ACTIONS[verb]] if verb in ACTIONS else []
        phrases[f"{verb} {direction}"] = turn + act
        phrases[f"{verb} opposite {direction}"] = turn * 2 + act
        phrases[f"{verb} around {direction}"] = (turn + act) * 4
    return phrases


def commands() -> list[tuple[str, str]]:
    """All 20,910 pairs (command, actions), in a fixed order."""
    repeated = {
        f"{phrase} {adverb}".strip(): actions * count
        for (phrase, actions), (adverb, count) in product(_phrases().items(), REPEATS.items())
    }
    pairs = list(repeated.items())
    for (first, before), (second, after) in product(repeated.items(), repeated.items()):
        pairs.append((f"{first} and {second}", before + after))
        pairs.append((f"{first} after {second}", after + before))
    return [(command, " ".join(actions)) for command, actions in pairs]
