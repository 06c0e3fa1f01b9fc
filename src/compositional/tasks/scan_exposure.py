"""SCAN, "add primitive, jump", with a few composed commands of jump in training: how many of these is a regularizer worth?

The rule is that of SCAN's files `add_prim_split/with_additional_examples` (Lake and Baroni, ICML 2018), but the draws are ours:
the published training sets are not nested, and each has its own test set. Here a draw is an order of all composed commands. Each
dose takes the first ones, and all doses of a draw are tested on the same commands.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict
from scipy import stats

from compositional import randomness
from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "commands": {
        "type": "integer",
        "minimum": 0,
        "maximum": 32,
        "default": 0,
        "description": "composed commands of jump in training, in addition to jump alone",
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "which order of all composed commands is used"},
    "weight": {
        "enum": ["tenth", "once"],
        "default": "tenth",
        "description": "tenth: jump alone and every composed command equally often, together a tenth of the rows, as published; "
        "once: each composed command once, and jump alone in a tenth of the rows",
    },
}
_LARGEST = 32  # the largest number of commands that PARAMETERS allow


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """About 14,670 training and 7,674 test pairs: all composed commands of jump but the first 32 of the draw.

    The references include the entropy of the verb in composed training commands, in bits (at most 2). Reads no file.
    """
    others, composed = scan.add_primitive("jump", 0)
    order = randomness.generator(randomness.derive("scan_exposure", parameters["draw"])).permutation(len(composed))
    shown = [composed[place] for place in order[: parameters["commands"]]]
    alone = [pair for pair in scan.commands() if pair[0] == "jump"]
    rows = round(len(others) / 9)  # a tenth of all
    jumps = (alone + shown) * round(rows / (1 + len(shown))) if parameters["weight"] == "tenth" else alone * rows + shown
    train = others + jumps
    kept = sorted(order[_LARGEST:].tolist())
    verbs = [word for command, _ in train if " " in command for word in command.split() if word in scan.ACTIONS]
    references = {
        "composed commands": parameters["commands"],
        "draw": parameters["draw"],
        "bits of the verb": float(stats.entropy([verbs.count(verb) for verb in scan.ACTIONS], base=2)),
    }
    members = {"train": train, "test": [composed[place] for place in kept]}
    return sentence_pairs.task(members, "train", scan.category, primitives=scan.ACTIONS, references=references)
