"""Symbols: combinations of items, which need no data. No download."""

from __future__ import annotations

FILES: dict = {}
