"""Names in the options of figures, apart from those of entries: metrics, representations, and what another option names.

A misspelled name would otherwise be missed when the figure is drawn, after all runs are trained.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from compositional.configuration.entries import Entries
from compositional.configuration.messages import SECTIONS, options_for
from compositional.configuration.schema import declared_by
from compositional.plugins import PACKAGE

_WRITE_METRICS = ("evaluation", "kinds", "measures", "models", "tables", "tasks")  # folders
_JOINS = re.compile(r" (?:of|in|at) ")


def names_in(schema: Any, value: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """Names in an option's value, found by "names" in its schema (see `figures`): the place, what is named, the name of each."""
    if not isinstance(schema, dict):
        return
    if value and (what := schema.get("names")) not in (None, "methods"):
        yield from ((f"{where}.{key}", what, key) for key in value) if isinstance(value, dict) else [(where, what, value)]
    if isinstance(value, dict):
        for key, own in value.items():
            inside = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            yield from names_in(inside, own, f"{where}.{key}")
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        for place, own in enumerate(value):
            yield from names_in(first[place] if place < len(first) else schema.get("items"), own, f"{where}.{place}")


def wrong_names(entries: Entries, where: str, module: str, options: dict[str, Any], given: Iterable[str]) -> list[str]:
    """Messages about names that do not exist, in the options that are `given`. `options` are all of the figure's.

    A name that exists but is in no grid is allowed, because an overlay's grids may leave it out: it is not drawn.
    """
    declared = declared_by(f"figures.{module}")["PARAMETERS"]
    found = [one for key in given if key in declared for one in names_in(declared[key], options[key], f"{where}.options.{key}")]
    return [f"{place}: {wrong}" for place, what, name in found if (wrong := _wrong(entries, what, name, options))]


def _wrong(entries: Entries, what: str, name: str, options: dict[str, Any]) -> str:
    if what in SECTIONS:
        known = entries.names(what)
        return "" if name in known else f"unknown {SECTIONS[what]} {name!r}{options_for(name, known)}"
    if what == "metrics":
        return _wrong_metric(entries, name)
    if what == "representations":
        return _wrong_representation(entries, name)
    known = _named_by(options, what.removeprefix("options."))
    return "" if name in known or not known else f"{what.removesuffix('.*')} has no {name!r}{options_for(name, known)}"


def _named_by(options: dict[str, Any], path: str) -> list[str]:
    """The keys of an option, or its items if it is a list; with .* after its name, those one level below, or texts there."""
    option, _, below = path.partition(".")
    levels = options[option].values() if below else [options[option]]
    return [name for level in levels for name in ([level] if isinstance(level, str) else level)]


def _wrong_representation(entries: Entries, name: str) -> str:
    shown = sorted({own for model in entries.names("models") for own in entries.declared("models", model)["REPRESENTATIONS"]})
    # The second one that a model shows under a name is called <name>_2 (evaluation.activations).
    return "" if re.sub(r"_\d+$", "", name) in shown else f"no model shows a representation {name!r}{options_for(name, shown)}"


@cache
def _sources() -> str:
    return "\n".join(
        path.read_text(encoding="utf-8") for room in _WRITE_METRICS for path in sorted((PACKAGE / room).rglob("*.py"))
    )


@cache
def _texts() -> frozenset[tuple[str, str]]:
    """The beginnings of texts in the code that computes metrics, each with "{" if an f-string goes on with a value."""
    return frozenset(re.findall(r"[\"'](\w[\w ,-]{2,40})(\{?)", _sources()))


def _is_written(start: str) -> bool:
    """Whether a text in the code that computes metrics begins like this, or is an f-string whose fixed beginning this has."""
    likely = (f'"{start}{end}' for end in '" {')  # the fast way
    return any(text in _sources() for text in likely) or any(
        start.startswith(text) if more else re.match(rf"{re.escape(start)}(?!\w)", text) for text, more in _texts()
    )


def _wrong_metric(entries: Entries, name: str) -> str:
    """Why a metric such as "<measure> of <component> in <representation> (shuffled)" is misspelled.

    Metrics are not declared. The code that computes one usually has a text with its first part; a name that is like none of these
    texts may be put together. Models declare what they show.
    """
    first = _JOINS.split(name)[0]
    if f'"{name}' in _sources():
        return ""
    if not _is_written(first) and (near := difflib.get_close_matches(first, sorted({text for text, _ in _texts()}), n=1)):
        return f"no code computes a metric {first!r}; did you mean {near[0]!r}?"
    representation = name.partition(" in ")[2].partition(" (")[0]
    return "" if representation in ("", "*") else _wrong_representation(entries, representation)
