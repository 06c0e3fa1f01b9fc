"""SCAN, "add primitive, jump", with a few composed commands of jump in training: how many of these is a regularizer worth?

The rule is that of SCAN's files `add_prim_split/with_additional_examples` (Lake and Baroni, ICML 2018), but the draws are ours:
the published training sets are not nested, and each has its own test set. Here a draw is an order of all composed commands. Each
dose takes the first ones, and all doses of a draw are tested on the same commands.

With `rows`, the number of different commands and the number of rows that contain them are varied separately. The entropy of the
verb, which decides according to Wold, Charpentier and Simon (ACL Findings 2025), depends almost on the rows only.
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
        "maximum": 256,
        "default": 0,
        "description": "composed commands of jump in training, in addition to jump alone; at most `untested`",
    },
    "untested": {
        "enum": [32, 256],
        "default": 32,
        "description": "the first commands of the draw, which are in no test set",
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "which order of all composed commands is used"},
    "weight": {
        "enum": ["tenth", "once"],
        "default": "tenth",
        "description": "without `rows`. tenth: jump alone and every composed command equally often, together a tenth of the "
        "rows, as published; once: each composed command once, and jump alone in a tenth of the rows",
    },
    "rows": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 1466,
        "default": None,
        "description": "rows of composed commands of jump, a multiple of `commands`; jump alone fills up a tenth of all rows",
    },
}


def _copies(parameters: dict, tenth: int) -> tuple[int, int]:
    """How often training contains jump alone and each composed command; tenth: the rows of both together.

    Raises:
        ValueError: options that contradict each other.
    """
    commands, rows = parameters["commands"], parameters["rows"]
    if commands > parameters["untested"]:
        raise ValueError(f"scan_exposure: commands={commands} is more than untested={parameters['untested']}; use untested: 256")
    if rows is None:
        return (round(tenth / (1 + commands)),) * 2 if parameters["weight"] == "tenth" else (tenth, 1)
    if commands == 0 or rows % commands:
        raise ValueError(f"scan_exposure: rows={rows} is no multiple of commands={commands}; each command occurs equally often")
    return tenth - rows, rows // commands


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """About 14,670 training pairs, and all composed commands of jump but the first of the draw: 7,674 test pairs, or 7,450.

    The references include the entropy of the verb in composed training commands, in bits (at most 2). Reads no file.
    """
    others, composed = scan.add_primitive("jump", 0)
    lone, each = _copies(parameters, round(len(others) / 9))
    order = randomness.generator(randomness.derive("scan_exposure", parameters["draw"])).permutation(len(composed))
    shown = [composed[place] for place in order[: parameters["commands"]]]
    alone = [pair for pair in scan.commands() if pair[0] == "jump"]
    train = others + (alone * lone + shown * each if lone != each else (alone + shown) * each)
    kept = sorted(order[parameters["untested"] :].tolist())
    verbs = [word for command, _ in train if " " in command for word in command.split() if word in scan.ACTIONS]
    references = {
        "composed commands": parameters["commands"],
        "draw": parameters["draw"],
        "bits of the verb": float(stats.entropy([verbs.count(verb) for verb in scan.ACTIONS], base=2)),
    }
    if parameters["rows"]:
        references["rows of composed commands"] = parameters["rows"]
    members = {"train": train, "test": [composed[place] for place in kept]}
    return sentence_pairs.task(members, "train", scan.category, primitives=scan.ACTIONS, references=references)
