"""SCAN (Lake and Baroni, ICML 2018): every command of its grammar with its actions. Generated, no download."""

from __future__ import annotations

from functools import cache
from itertools import product

FILES: dict = {}

ACTIONS = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
REPEATS = {"": 1, "twice": 2, "thrice": 3}


def _phrases() -> dict[str, list[str]]:
    """Commands without "twice", "and", ...: a verb, or a verb (or "turn") with a direction; each with its actions."""
    phrases = {verb: [action] for verb, action in ACTIONS.items()}
    for verb, direction in product((*ACTIONS, "turn"), TURNS):
        turn = [TURNS[direction]]
        act = [ACTIONS[verb]] if verb in ACTIONS else []
        phrases[f"{verb} {direction}"] = turn + act
        phrases[f"{verb} opposite {direction}"] = turn * 2 + act
        phrases[f"{verb} around {direction}"] = (turn + act) * 4
    return phrases


@cache
def commands() -> tuple[tuple[str, str], ...]:
    """All 20,910 pairs (command, actions), in a fixed order."""
    repeated = {
        f"{phrase} {adverb}".strip(): actions * count
        for (phrase, actions), (adverb, count) in product(_phrases().items(), REPEATS.items())
    }
    pairs = list(repeated.items())
    for (first, before), (second, after) in product(repeated.items(), repeated.items()):
        pairs.append((f"{first} and {second}", before + after))
        pairs.append((f"{first} after {second}", after + before))
    return tuple((command, " ".join(actions)) for command, actions in pairs)


def add_primitive(primitive: str, repetitions: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Training and test pairs of a split "add primitive": training shows the primitive only alone, `repetitions` times."""
    alone = [pair for pair in commands() if pair[0] == primitive]
    inside = [pair for pair in commands() if primitive in pair[0] and pair[0] != primitive]
    others = [pair for pair in commands() if primitive not in pair[0]]
    return others + alone * repetitions, inside


def category(command: str, actions: str) -> str:
    """The parts of a command and the length of its actions, for accuracy by category: "manner/around; count/twice; ...".

    Of two phrases, the one later in the orders plain, direction, opposite, around and once, twice, thrice counts.
    """
    words = set(command.split())
    conjunction = next((word for word in ("and", "after") if word in words), "none")
    manner = next((word for word in ("around", "opposite") if word in words), "direction" if words & set(TURNS) else "plain")
    count = next((word for word in ("thrice", "twice") if word in words), "once")
    begin = (len(actions.split()) - 1) // 8 * 8 + 1
    return f"conjunction/{conjunction}; manner/{manner}; count/{count}; length/{begin}-{begin + 7}"
