"""JSON schemas: how a module may declare its options, and values checked against such declarations."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import jsonschema

from compositional.configuration.messages import SECTIONS, ConfigurationError, explain, options_for
from compositional.plugins import available, declarations, module_path
from compositional.records.provenance import RUN_RECORDS


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """To Python's `$` a text with a line break at its end ends before it."""
    if isinstance(instance, str) and (not re.search(pattern, instance) or (pattern.endswith("$") and instance.endswith("\n"))):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


# To JSON schema 400.0 is an integer, and .nan and what no float holds are numbers; to whom counts steps or names folders they
# are not.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {"pattern": _pattern},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
            "number": lambda _, value: (
                isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
            ),
        }
    ),
)


def check(instance: Any, schema: dict, prefix: str = "") -> list[str]:
    validator = _Validator(schema)
    return [
        explain(error, prefix)
        for error in sorted(validator.iter_errors(instance), key=lambda error: list(map(str, error.absolute_path)))
    ]


def options_schema(properties: dict[str, dict]) -> dict:
    """The schema of an object with exactly these options, all of them optional."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


_META = jsonschema.Draft7Validator.META_SCHEMA  # a draft whose own schema is in one piece


# What an option may be declared as. To JSON schema alone a word that it does not know, such as "minimun", is no error.
_OPTION = {
    "type": ["object", "boolean"],
    "additionalProperties": False,
    "properties": {
        word: _META["properties"][word]
        for word in (
            *("type", "enum", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "pattern"),
            *("minItems", "maxItems", "uniqueItems", "additionalProperties", "properties", "required"),
            *("default", "description"),
        )
    }
    | {
        "items": {"$ref": "#"},
        "prefixItems": {"type": "array", "items": {"$ref": "#"}},
        "names": {"enum": ["methods", *SECTIONS]},
    },
    "definitions": _META["definitions"],
}


_PARAMETERS = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["default", "description"],
        "anyOf": [{"required": ["type"]}, {"required": ["enum"]}],
    },
}


def several(value: str | tuple[str, ...]) -> list[str]:
    """One name or several as a list."""
    return [value] if isinstance(value, str) else list(value)


def _unknown(module: str, found: dict[str, Any]) -> list[str]:
    """Kinds, a dataset and files of runs that a module of a task, a model, a table or a figure names, and that do not exist."""
    section, made = module.partition(".")[0], [*RUN_RECORDS, *itertools.chain(*RUN_RECORDS.values())]
    asked: list[tuple[str, str, Sequence[str]]] = []
    if section in ("tasks", "models"):
        kinds = available("kinds")
        asked += [("KIND", kind, kinds) for kind in several(found["KIND"])]
    if section == "tasks":
        asked.append(("DATASET", found["DATASET"], available("datasets")))
    if section == "figures":
        known = [declared_by(f"tables.{name}")["SOURCE"] for name in available("tables")]
        known += [name for name in made if name.endswith(".csv")]
        asked += [("SOURCE", name, known) for name in several(found["SOURCE"])]
    if section == "tables":
        asked.append(("SOURCE", found["SOURCE"], ["split", *made]))
    return [
        f"{module_path(module)}: {key}: there is no {value!r}{options_for(value, known)}"
        for key, value, known in asked
        if value not in known
    ]


@cache
def declared_by(module: str) -> dict[str, Any]:
    """What a module declares; its options are JSON schemas that their defaults follow, and what it names exists.

    Raises:
        ConfigurationError: not so.
    """
    found = declarations(module)
    where, options = f"{module_path(module)}: PARAMETERS", found.get("PARAMETERS", {})
    problems = check(options, _PARAMETERS, where)
    problems = problems or [line for name in options for line in check(options[name], _OPTION, f"{where}.{name}")]
    if not problems:
        # An empty default may be against its own schema: then the option must be given.
        values = {name: option["default"] for name, option in options.items() if option["default"] not in ([], {})}
        problems = check(values, options_schema(options), where)
    problems += _unknown(module, found)
    if problems:
        raise ConfigurationError("\n".join(problems))
    return found


def typed(properties: dict[str, dict], values: dict[str, Any]) -> dict[str, Any]:
    """Those of `values` that are options; 1 as 1.0 where any number is allowed, since both ask for the same."""

    def number(name: str, value: Any) -> Any:
        kinds = properties[name].get("type", ())
        integer = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if integer and "number" in ([kinds] if isinstance(kinds, str) else kinds) else value

    return {name: number(name, value) for name, value in values.items() if name in properties}
