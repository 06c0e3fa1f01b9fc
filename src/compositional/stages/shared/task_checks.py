"""Checks of what a task's `build` returns: members, columns, values, and the content of task.json."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
from datasets import Array2D, Array3D, Dataset, DatasetDict

from compositional import files, plugins
from compositional.runs import NAME
from compositional.tasks import IN_DISTRIBUTION

_WORDS = {"input": "source_words", "output": "target_words"}  # columns of sentences, and the lists of all of their words
_ANSWERS = ("label", "output")  # columns that a network learns to predict, of which there must be several values
_NUMBERS = ("point", "target", "value")  # columns of numbers
# What "decoding" may contain (`evaluation.decoding.scores`, `evaluation.readings`, `evaluation.semantic_match.scores`).
_DECODING = {"beam": range(1, 2**31), "bleu": (False, True, "words", "raw"), "brackets": (False, True), "semantic": (False, True)}


def check(task: str, kind: str, members: Any, about: dict[str, Any]) -> None:
    """Refuse a result of a task's `build` that violates `tasks/__init__.py`.

    Raises:
        ValueError: the message names task, key, value and what is allowed.
    """
    if not isinstance(about, dict):
        raise ValueError(f"task {task!r}: build must return its members and a dict for task.json, the latter is {about!r}")
    for key, value in about.items():
        try:
            files.json_bytes(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"task {task!r}: {key} cannot be written to task.json ({error}); write int(...), float(...) or .tolist()"
            ) from error
    _check_members(task, members)
    virtual = about.get("virtual_words", [])
    if not isinstance(virtual, list) or not all(isinstance(word, str) and word.split() == [word] for word in virtual):
        raise ValueError(
            f"task {task!r}: virtual_words is {virtual!r}, must be a list of words without spaces, such as ['virtual0']"
        )
    references = about.get("references", {})
    if not isinstance(references, dict) or not all(map(_is_number, references.values())):
        raise ValueError(f"task {task!r}: references is {references!r}, must be a dictionary of numbers by what they measure")
    own = next(name for name in IN_DISTRIBUTION if name in members)
    if (said := about.get("in_distribution")) != own:
        first = ", ".join(IN_DISTRIBUTION)
        raise ValueError(f"task {task!r}: in_distribution is {said!r}, must be {own!r}, the first of its members among {first}")
    declared = plugins.declarations(f"kinds.{kind}")
    _check_decoding(task, about.get("decoding", {}), declared)
    _check_disjoint(task, members, about.get("disjoint"), declared)
    if missing := [key for key in declared["SAID"] if key not in about]:
        needed = ", ".join(declared["SAID"])
        raise ValueError(f"task {task!r}: its task.json has no {', '.join(missing)}; tasks of kind {kind!r} need {needed}")
    known = [name for name in members if name in ("train", "test", "compositional", *IN_DISTRIBUTION)]
    for (column, allowed), name in itertools.product(declared["COLUMNS"].items(), known):
        feature = members[name].features.get(column)
        if feature is None or (allowed and type(feature).__name__ not in allowed):
            of = f"of the feature {' or '.join(allowed)}" if allowed else "there"
            raise ValueError(f"task {task!r}: its column {column} is {feature!r} in {name}, must be {of}")
    check_values(task, members, declared["COLUMNS"], about)


def _check_members(task: str, members: Any) -> None:
    """Refuse members that are no DatasetDict, empty or not well named, or a task without a training set."""
    if not isinstance(members, DatasetDict) or "train" not in members:
        raise ValueError(
            f"task {task!r}: its members are {type(members).__name__} {[*members]}, must be a DatasetDict with 'train'"
        )
    if empty := [name for name, member in members.items() if not len(member)]:
        raise ValueError(f"task {task!r}: no examples are left for {', '.join(empty)}: change its options")
    if wrong := [name for name in members if not re.fullmatch(NAME, name)]:
        raise ValueError(
            f"task {task!r}: a member is called {wrong[0]!r}; write a letter, then letters, digits and _, all lower case"
        )


def _check_decoding(task: str, asked: Any, declared: dict[str, Any]) -> None:
    """Refuse what the evaluation cannot decode. It would fail, or ignore a misspelled key, only after training."""
    if asked and not (declared["REPRESENTED"] and "output" in declared["COLUMNS"]):  # no `kinds.sequence.SequenceSplit`s
        raise ValueError(f"task {task!r}: decoding is {asked!r}, but outputs of tasks of its kind are no sentences: leave it out")
    right = isinstance(asked, dict) and all(own in _DECODING.get(key, ()) for key, own in asked.items())
    if not right or ("beam" in asked) != ("bleu" in asked):
        raise ValueError(
            f"task {task!r}: decoding is {asked!r}, must be a dictionary with beam (at least 1) and bleu (True, False, 'words' "
            "or 'raw'), or without both; and brackets and semantic (True or False), if wanted"
        )


def _check_disjoint(task: str, members: DatasetDict, rules: Any, declared: dict[str, Any]) -> None:
    """Refuse rules of an audit that name no existing columns and members, or do not compare the test set by what a model sees."""
    if not isinstance(rules, list) or not all(_is_rule(rule, members) for rule in rules):
        raise ValueError(
            f"task {task!r}: disjoint is {rules!r}, must be a list of {{'columns': some of {members['train'].column_names}, "
            f"'members': some of {list(members)}}}, each with 'by_design': <why> if its items may overlap"
        )
    seen = declared["INPUTS"] or members["train"].column_names
    if "test" in members and not any("test" in rule["members"] and set(rule["columns"]) <= set(seen) for rule in rules):
        raise ValueError(
            f"task {task!r}: disjoint is {rules!r} and does not compare 'test' by what a model sees. State columns among "
            f"{', '.join(seen)} in which no test example may equal a training example, with 'by_design': <why> if they may"
        )


def _is_rule(rule: Any, members: DatasetDict) -> bool:
    return (
        isinstance(rule, dict)
        and {"columns", "members"} <= rule.keys() <= {"columns", "members", "by_design"}
        and all(isinstance(rule[key], list) and rule[key] for key in ("columns", "members"))
        and bool(isinstance(why := rule.get("by_design", "-"), str) and why.strip())
        and all(name in list(members) for name in rule["members"])
        and all(column in members[name].column_names for name in ("train", *rule["members"]) for column in rule["columns"])
    )


def check_values(task: str, members: DatasetDict, columns: dict[str, Any], about: dict[str, Any]) -> None:
    """Refuse text among numbers, numbers that are not finite, and labels that are none of the task's classes or are all equal.

    Only the columns that the task's kind reads are checked.
    """
    if "target" in about and about["target"] not in ("number", "sign"):
        raise ValueError(f"task {task!r}: target is {about['target']!r}, must be 'number' or 'sign'")
    if "label" in columns and not (isinstance(about["classes"], int) and about["classes"] > 0):
        raise ValueError(f"task {task!r}: classes is {about['classes']!r}, must be the number of classes")
    for (name, member), column in itertools.product(members.items(), columns):
        if column not in member.column_names:
            continue
        if column == "image":
            _check_image(task, name, member, about)
            continue
        values = member[column][:]
        if column in _WORDS and (said := _WORDS[column]) in about:
            _check_words(task, f"column {column} of {name}", values, said, about[said])
        if column == "label" and (wrong := [value for value in values if value not in range(about["classes"])]):
            raise ValueError(
                f"task {task!r}: {name} has the label {wrong[0]!r}; labels must be whole numbers from 0 to {about['classes'] - 1}"
            )
        if name == "train" and column in _ANSWERS and len(values) > 1 and all(value == values[0] for value in values):
            raise ValueError(
                f"task {task!r}: every example of train has the {column} {values[0]!r}, so there is nothing to learn"
            )
        if column == "items" and "sizes" in about and (wrong := [own for own in values if not _is_below(own, about["sizes"])]):
            raise ValueError(
                f"task {task!r}: {name} has the items {wrong[0]!r}; they must be whole numbers, at least 0 and below sizes, "
                f"{about['sizes']!r}"
            )
        flat = np.ravel(np.array(values, dtype=object))
        if column in _NUMBERS and (wrong := [value for value in flat if not isinstance(value, int | float)]):
            raise ValueError(f"task {task!r}: column {column} of {name} has {wrong[0]!r}, must be numbers, as many in every row")
        if any(isinstance(value, float) and not math.isfinite(value) for value in flat):
            raise ValueError(f"task {task!r}: column {column} of {name} has numbers that are not finite")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_words(task: str, where: str, sentences: list[Any], said: str, words: Any) -> None:
    """Refuse sentences that are not text, or have words that the task does not list."""
    if wrong := [own for own in sentences if not isinstance(own, str)]:
        raise ValueError(f"task {task!r}: {where} has {wrong[0]!r}, must be text, words separated by spaces")
    known = {word for word in words if isinstance(word, str)} if isinstance(words, list) else set()
    if unknown := sorted({word for own in sentences for word in own.split()} - known):
        raise ValueError(
            f"task {task!r}: {where} has the word {unknown[0]!r}, which {said} does not list; `sentence_pairs.task` lists all"
        )


def _is_below(items: list[int], sizes: list[int]) -> bool:
    return len(items) == len(sizes) and all(item in range(size) for item, size in zip(items, sizes, strict=True))


def _check_units(task: str, member: Dataset, about: dict[str, Any]) -> None:
    """Refuse training images of zeros and ones, and a mean or std that is not of pixels divided by 255, one per channel."""
    if not any(np.max(image) > 1 for image in member.with_format("numpy")["image"]):
        raise ValueError(
            f"task {task!r}: no image of train has a number above 1; images must be of whole numbers from 0 (black) to 255 "
            "(white): multiply them by 255"
        )
    channels = about["image_shape"][0]
    for key, lowest in (("mean", 0), ("std", 1e-6)):
        own = about.get(key, [])
        numbers = isinstance(own, list) and all(isinstance(value, int | float) and lowest <= value <= 1 for value in own)
        if key in about and not (numbers and len(own) == channels and {"mean", "std"} <= about.keys()):
            raise ValueError(
                f"task {task!r}: {key} is {own!r}; mean and std must be lists of one number per channel ({channels}), of pixels "
                "divided by 255"
            )


def _check_image(task: str, name: str, member: Dataset, about: dict[str, Any]) -> None:
    """Refuse images that are not of whole numbers from 0 to 255, or of another shape than the task states."""
    feature = member.features["image"]
    if not isinstance(feature, Array2D | Array3D):
        return
    if feature.dtype != "uint8":
        for image in member.with_format("numpy")["image"]:
            if wrong := [float(value) for value in np.ravel(image) if not (0 <= value <= 255 and value == int(value))]:
                raise ValueError(
                    f"task {task!r}: an image of {name} has the value {wrong[0]:g}; images must be of whole numbers from 0 to 255"
                )
    if len(feature.shape) == 3 and feature.shape[0] > 4 >= feature.shape[2]:
        raise ValueError(
            f"task {task!r}: images of {name} have the shape {[*feature.shape]}, must be [channels, height, width]: "
            "np.moveaxis(image, -1, 0) makes such images"
        )
    shape = about["image_shape"]
    if not (isinstance(shape, list | tuple) and len(shape) == 3 and all(isinstance(size, int) and size > 0 for size in shape)):
        raise ValueError(f"task {task!r}: image_shape is {shape!r}, must be [channels, height, width]")
    if name == "train":
        _check_units(task, member, about)
    width, stated, part = feature.shape[-1], list(shape), about.get("component_width")
    if "canvas" not in about and stated != (found := [*feature.shape] if len(feature.shape) == 3 else [1, *feature.shape]):
        raise ValueError(f"task {task!r}: image_shape is {stated}, images of {name} have the shape {found}")
    if part is not None and not (isinstance(part, int) and 0 < part < width):
        raise ValueError(f"task {task!r}: component_width is {part!r}, must be between 1 and {width - 1}, or None")
