"""Symbols: combinations of items without any data behind them. No download."""

from __future__ import annotations

FILES: dict = {}
