"""The order of options survives JSON with sorted keys."""

from __future__ import annotations

import json

import pytest

from compositional.records.order import in_order, order_of


@pytest.mark.parametrize(
    "options",
    [
        {"b": 1, "a": {"d": 2, "c": 3}},
        {"panels": [{"title": "t", "models": {"z": "first", "y": "second"}}, {"models": {}, "a": [1, 2]}]},
        {"rows": [[{"b": 1, "a": 2}], []], "empty": {}},
        [1, "two", None],
    ],
)
def test_options_come_back_in_their_order(options):
    stored = json.loads(json.dumps({"options": options, "order": order_of(options)}, sort_keys=True))
    back = in_order(stored["options"], stored["order"])
    assert json.dumps(back) == json.dumps(options)


def test_plain_values_have_no_order():
    assert order_of(1) is order_of([1, {}, "x"]) is None
