"""Keep the order of options, such as a figure's panels and lines, which JSON with sorted keys loses."""

from __future__ import annotations

from typing import Any


def order_of(value: Any) -> list | None:
    """The keys of nested dictionaries in order, [[key, order of its value], ...]; None for anything else."""
    return [[key, order_of(own)] for key, own in value.items()] if isinstance(value, dict) else None


def in_order(value: Any, order: list | None) -> Any:
    """The same dictionaries with their keys sorted as `order_of` returned them."""
    return value if order is None else {key: in_order(value[key], own) for key, own in order}
