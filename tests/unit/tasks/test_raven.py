"""Targets of the puzzles, and the accuracy of simple rules."""

from __future__ import annotations

import pytest
from datasets import Dataset

from compositional.datasets import raven
from compositional.plugins import defaults
from compositional.tasks import raven as raven_task


def test_any_rule_can_be_the_target():
    options = defaults("tasks.raven") | {"train_puzzles": 60, "validation_puzzles": 40, "image_size": 48}
    for target, classes in (("constant_color", 2), ("arithmetic_number", 2), ("shape_rule", 4), ("matrix_type", 6)):
        members, about = raven_task.build(None, options | {"target": target})
        assert about["classes"] == classes
        assert set(members["train"]["label"]) <= set(range(classes))
    matrices = [raven.generate(0, number) for number in range(60)]
    assert [raven_task.label(matrix, "progression_shape") for matrix in matrices] == [
        int(any(rule.name == "progression" and rule.attribute == "shape" for rules in matrix.rules for rule in rules))
        for matrix in matrices
    ]
    with pytest.raises(ValueError, match="all 60 training puzzles are 'yes'"):
        raven_task.build(None, options | {"target": "constant_size"})


def test_the_layout_rule_is_a_reference_only_for_binary_targets():
    member = Dataset.from_dict({"label": [0, 1, 2, 2], "matrix_type": ["shape_in_shape", "x", "x", "x"]})
    assert raven_task.references(member, binary=False) == {"majority class": 0.5}
    member = Dataset.from_dict({"label": [1, 0, 1, 0], "matrix_type": ["shape_in_shape", "x", "x", "x"]})
    assert raven_task.references(member, binary=True) == {"majority class": 0.5, "shape in shape": 0.75}
