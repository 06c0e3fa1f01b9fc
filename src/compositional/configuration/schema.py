"""JSON schemas: how a module may declare its options, and checks of values against such declarations."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import jsonschema

from compositional.configuration.messages import LARGEST, SECTIONS, ConfigurationError, explain, options_for
from compositional.configuration.signatures import disagreements
from compositional.plugins import available, declarations, module_path
from compositional.records.provenance import RUN_RECORDS


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Match patterns strictly: Python's `$` also matches before a line break at the end of a text."""
    if isinstance(instance, str) and (not re.search(pattern, instance) or (pattern.endswith("$") and instance.endswith("\n"))):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


# JSON schema counts 400.0 and whole numbers of any size as integers, and .nan and values beyond the range of floats as numbers.
# They are refused here because these values count steps and name folders. A maximum does not refuse what is not a number.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {"pattern": _pattern},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST,
            "number": lambda _, value: (
                isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
            ),
        }
    ),
)


def check(instance: Any, schema: dict, prefix: str = "") -> list[str]:
    """Messages about everything in `instance` that breaks the schema, in order of place; `prefix` names where the instance is."""
    validator = _Validator(schema)
    errors = sorted(validator.iter_errors(instance), key=lambda error: list(map(str, error.absolute_path)))
    return [line for error in errors for line in explain(error, prefix).splitlines()]


def options_schema(properties: dict[str, dict]) -> dict:
    """The schema of an object with exactly these options, all of them optional."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


_META = jsonschema.Draft7Validator.META_SCHEMA  # the latest draft whose own schema is a single document


# What the declaration of an option may contain. JSON schema alone ignores unknown keywords, such as the misspelled "minimun".
_OPTION = {
    "type": ["object", "boolean"],
    "additionalProperties": False,
    "properties": {
        word: _META["properties"][word]
        for word in (
            *("type", "enum", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "pattern"),
            *("minItems", "maxItems", "minProperties", "uniqueItems", "additionalProperties", "properties", "required"),
            *("default", "description"),
        )
    }
    | {
        "items": {"$ref": "#"},
        "prefixItems": {"type": "array", "items": {"$ref": "#"}},
        "names": {"anyOf": [{"enum": ["methods", "metrics", "representations", *SECTIONS]}, {"pattern": r"^options\."}]},
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


def _digest(digits: int, *others: str) -> dict[str, Any]:
    return {"type": ["string", *others], "pattern": f"^[0-9a-f]{{{digits}}}$"}


# What a dataset declares: its files (`stages.download`) and their license.
_OF_DATASETS: dict[str, dict[str, Any]] = {
    "FILES": {
        "type": "object",
        "propertyNames": {"pattern": "^[^/]+$"},
        "additionalProperties": {
            "type": "object",
            "required": ["mirror", "url"],
            "anyOf": [{"required": ["sha256"]}, {"required": ["git_blob"]}],
            "additionalProperties": False,
            "properties": {
                "sha256": _digest(64, "null"),
                "git_blob": _digest(40),
                "bytes": {"type": "integer", "minimum": 0},
                "mirror": {"type": "string", "minLength": 1},
                "url": {"type": ["string", "null"], "pattern": "^https?://"},
                "when": {"type": "object"},
            },
        },
    },
    "LICENSE": {
        "type": "object",
        "required": ["name", "url", "redistribution"],
        "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "url": {"type": "string"}, "redistribution": {"type": "boolean"}},
    },
}


def merged(module: str, shared: dict[str, Any]) -> dict[str, Any]:
    """A module's options together with those that are not its own.

    Raises:
        ConfigurationError: the module declares one of the latter, too.
    """
    own = declared_by(module)["PARAMETERS"]
    if taken := sorted(own.keys() & shared.keys()):
        raise ConfigurationError(f"{module_path(module)}: PARAMETERS: {', '.join(taken)} has another meaning here; rename it")
    return own | shared


def several(value: str | Iterable[str]) -> list[str]:
    """One name or several as a list."""
    return [value] if isinstance(value, str) else list(value)


def _unknown(module: str, found: dict[str, Any]) -> list[str]:
    """Messages about names in a module's declarations that do not exist: kinds, datasets and files of runs."""
    section, made = module.partition(".")[0], [*RUN_RECORDS, *itertools.chain(*RUN_RECORDS.values())]
    known: dict[str, Sequence[str]] = dict.fromkeys(("KIND", "APPLIES_TO"), available("kinds"))
    known |= {"DATASET": available("datasets"), "SOURCE": ["split", *made]}
    if section == "figures":
        read = [declared_by(f"tables.{name}")["SOURCE"] for name in available("tables")]
        known["SOURCE"] = [*read, *(name for name in made if name.endswith(".csv"))]
    return [
        f"{module_path(module)}: {key}: there is no {value!r}{options_for(value, names)}"
        for key, names in known.items()
        for value in several(found.get(key, ()))
        if value not in names
    ]


@cache
def declared_by(module: str) -> dict[str, Any]:
    """What a module declares. Its options must be JSON schemas that their defaults satisfy, the names in it must exist, and
    the files of a dataset need checksums and sources.

    Raises:
        ConfigurationError: the declarations are wrong.
    """
    found = declarations(module)
    if problems := disagreements(module, found):
        raise ConfigurationError("\n".join(problems))
    where, options = f"{module_path(module)}: PARAMETERS", found.get("PARAMETERS", {})
    problems = check(options, _PARAMETERS, where)
    problems = problems or [line for name in options for line in check(options[name], _OPTION, f"{where}.{name}")]
    if not problems:
        # An empty default may violate its own schema: then the option is mandatory.
        values = {name: option["default"] for name, option in options.items() if option["default"] not in ([], {}, "")}
        problems = check(values, options_schema(options), where)
    for name, form in _OF_DATASETS.items():
        if module.startswith("datasets.") and found.get(name) is not None:
            problems += check(found[name], form, f"{module_path(module)}: {name}")
    problems += _unknown(module, found)
    if problems:
        raise ConfigurationError("\n".join(problems))
    return found


def typed(properties: dict[str, dict], values: dict[str, Any]) -> dict[str, Any]:
    """The values that are options. 1 becomes 1.0 if an option takes any number, so that both spellings give the same recipe."""

    def number(name: str, value: Any) -> Any:
        kinds = properties[name].get("type", ())
        integer = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if integer and "number" in several(kinds) else value

    return {name: number(name, value) for name, value in values.items() if name in properties}
