"""SCAN, fillers of "around right": how often, and with how many other verbs, must training show it before "jump around right"?

The rules are those of SCAN's filler and few-shot splits (Loula, Baroni and Lake, "Rearranging the Familiar", BlackboxNLP 2018).
All are tested on the same commands. The published few-shot training sets are random draws; here a draw is an order of all
commands that could be shown, and each number of commands takes the first ones.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional import randomness
from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "verbs": {
        "type": "integer",
        "minimum": 0,
        "maximum": 3,
        "default": 1,
        "description": 'verbs that training shows with "around right": the first of look, walk and run',
    },
    "commands": {
        "type": ["integer", "null"],
        "minimum": 0,
        "maximum": 3303,
        "default": None,
        "description": 'commands with "around right" in training, each once; null: all commands of these verbs',
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "which order of these commands is used"},
}
_SHOWN = ("look", "walk", "run")  # in the published order
_TEMPLATE = "around right"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training pairs without "around right" (15,225) and those shown, in SCAN's order; 1,173 test pairs with "jump around right".

    One verb can be shown in 1,065 commands, two in 2,166, three in 3,303. Reads no file.

    Raises:
        ValueError: more commands are to be shown than there are with these verbs.
    """
    verbs, count = _SHOWN[: parameters["verbs"]], parameters["commands"]
    pairs = [pair for pair in scan.commands() if f"turn {_TEMPLATE}" not in pair[0]]
    others = [pair for pair in pairs if _TEMPLATE not in pair[0]]
    unseen = [f"{verb} {_TEMPLATE}" for verb in scan.ACTIONS if verb not in verbs]
    possible = [pair for pair in pairs if _TEMPLATE in pair[0] and not any(phrase in pair[0] for phrase in unseen)]
    test = [pair for pair in pairs if f"jump {_TEMPLATE}" in pair[0]]
    if count is not None and count > len(possible):
        raise ValueError(
            f'scan_fillers: commands={count}, but with verbs={len(verbs)} only {len(possible)} commands have "{_TEMPLATE}"; '
            f"ask for at most {len(possible)}, or for more verbs"
        )
    order = randomness.generator(randomness.derive("scan_fillers", parameters["draw"])).permutation(len(possible))
    shown = sorted(order[:count].tolist())
    references = {"composed commands": len(shown), "draw": parameters["draw"], "verbs shown": len(verbs)}
    members = {"train": others + [possible[place] for place in shown], "test": test}
    return sentence_pairs.task(members, "train", scan.category, primitives=scan.ACTIONS, references=references)
