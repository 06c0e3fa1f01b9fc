"""SCAN, "add primitive, jump", with a few composed commands of jump in training: how many is a regularizer worth?

As the files `add_prim_split/with_additional_examples` of SCAN (Lake and Baroni, ICML 2018), by their rule, with draws of our own:
theirs are not nested and test on what their own training lacks. Here the commands of a draw are an order of all composed
commands, of which every dose takes the first, and all doses of a draw are tested on the same commands.
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
        "description": "composed commands of jump in training, beside jump alone",
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "which ones: each draw is an order of all of them"},
    "weight": {
        "enum": ["tenth", "once"],
        "default": "tenth",
        "description": "tenth: jump alone and every composed command equally often, together a tenth of the rows, as published; "
        "once: a composed command once, jump alone a tenth of the rows",
    },
}
_LARGEST = 32  # number of commands: what PARAMETERS allow


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """About 14,670 training pairs, and 7,674 for the test: all composed commands of jump but the first 32 of the draw.

    Among its references is the entropy of the verb in composed training commands, in bits (of at most 2). Reads no file.
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
