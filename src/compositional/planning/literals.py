"""Output names without wildcards, which are compared instead of matched."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_SAME = re.compile("").match("")  # a match without wildcards


class Literal:
    """What Snakemake needs of a compiled regular expression, for a name that only matches itself."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = str.__str__(name)

    def match(self, target: str) -> re.Match[str] | None:
        """A match without wildcards if this is the name, else None."""
        return _SAME if str.__eq__(self.name, target) else None


def compare(rules: Iterable[Any]) -> None:
    """Let Snakemake compare the outputs of rules without wildcards instead of compiling a regular expression for each of them.

    There are thousands, and compiling takes a tenth of a dry run. If a Snakemake does not keep the expression in `_regex`, only
    this time is lost.
    """
    for rule in rules:
        for output in [] if rule.has_wildcards() else rule.output:
            if hasattr(output, "_regex"):
                output._regex = Literal(output)
