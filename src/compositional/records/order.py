"""Keep the order of options, such as a figure's panels and lines, which JSON with sorted keys loses."""

from __future__ import annotations

from typing import Any


def order_of(value: Any) -> list | None:
    """The keys of nested dictionaries and lists in order, [[key, order of its value], ...]; None if there are none."""
    if isinstance(value, dict):
        return [[key, order_of(own)] for key, own in value.items()]
    inside = [order_of(own) for own in value] if isinstance(value, list) else []
    return inside if any(inside) else None


def in_order(value: Any, order: list | None) -> Any:
    """The same dictionaries with their keys sorted as `order_of` returned them."""
    if order is None:
        return value
    if isinstance(value, list):
        return [in_order(own, its) for own, its in zip(value, order, strict=True)]
    return {key: in_order(value[key], own) for key, own in order}
