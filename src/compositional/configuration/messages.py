"""Messages about a wrong configuration: key, value, what is allowed and the nearest match."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

import jsonschema

# The sections whose entries are modules with options, and what one entry is called.
SECTIONS = {"tasks": "task", "models": "model", "regularizers": "regularizer"}

LARGEST = 2**63  # whole numbers are smaller than this, because tensors and files of results hold 64 bits
_LONGEST = 200  # characters of a value in a message
_MANY, _NEAREST = 25, 5  # more allowed names than this are not listed if one is near, but only the nearest
SYNONYMS = {"gpu": "cuda"}  # words that are close in meaning but not in spelling


class ConfigurationError(ValueError):
    """The configuration is wrong; the message names key, value, what is allowed and the nearest match."""


def options_for(value: Any, allowed: Sequence[Any]) -> str:
    """The end of a message about a wrong value: the nearest match, and what is allowed; of many names only the nearest."""
    names = [str(option) for option in allowed]
    meant = SYNONYMS.get(str(value), str(value))
    close = difflib.get_close_matches(meant, names, n=_NEAREST, cutoff=0.5)
    guess = f"; did you mean {close[0]!r}?" if close else "."
    if close and len(names) > _MANY:
        return f"{guess} Allowed: {', '.join(close)} and {len(names) - len(close)} others."
    return f"{guess} Allowed: {', '.join(names) or 'none'}."


def _short(value: Any) -> str:
    """A value as it is shown in a message: the middle of a long one is left out."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 50]} ... {text[-40:]}"


def _said(error: jsonschema.ValidationError) -> str:
    """The schema's own message about a value, which repeats the value as a whole."""
    return error.message.replace(repr(error.instance), _short(error.instance))


def _hint_about_type(value: Any, wanted: str | list[str]) -> str:
    """What to do about a value that has none of the wanted types of JSON schema."""
    if isinstance(value, int) and abs(value) >= LARGEST and ("integer" in wanted or "number" in wanted):
        return "; it is too large"
    if isinstance(value, int | float) and not isinstance(value, bool) and "string" in wanted:
        return "; this is a number: write it in quotes"
    if value is None:
        return "; it is empty: write a value, or leave the key out"
    if wanted == "array" and isinstance(value, int | float | str | dict) and not isinstance(value, bool):
        return f"; write a list, [{value}]"
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d*)?", value):
        return "; this is text: remove its quotes or, if it is from --config, write it in a file for --configfile"
    if isinstance(value, float) and not math.isfinite(value):
        return "; it must be finite"
    if isinstance(value, float) and "integer" in wanted and value.is_integer():
        return f"; write {value:.0f}"
    if isinstance(value, list) and wanted != "object":
        return "; write one value, not a list"
    if wanted == "object":
        colon = ", with a space after the colon" if isinstance(value, str) and ":" in value else ""
        return f"; write a value for each name, {{name: value}}{colon}{', instead of a list' * isinstance(value, list)}"
    return ""


def _belongs(unknown: str, properties: dict[str, Any]) -> str:
    """Where a key that is unknown here is known: in a part of the same entry, such as training, or in a grid of a figure."""
    parts = [name for name, own in properties.items() if isinstance(own, dict) and unknown in own.get("properties", {})]
    if unknown in ("lambda", "lambdas", "seed", "seeds"):
        return "; lambdas and seeds are in the grids of a figure (config/README.md)." * ("seeds" not in properties)
    return f"; it belongs to {parts[0]}: {{{unknown}: ...}}." if parts else ""


def explain(error: jsonschema.ValidationError, prefix: str) -> str:
    """One readable line for a schema violation."""
    key = ".".join([prefix, *(str(part) for part in error.absolute_path)]).strip(".") or "(top level)"
    if error.validator == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        unknown = [name for name in error.instance if name not in known]
        owners = error.schema.get("properties", {})
        return "\n".join(f"{key}: unknown key {name!r}{_belongs(name, owners) or options_for(name, known)}" for name in unknown)
    if error.validator == "required":  # the value is everything else, such as the whole configuration
        return f"{key}: {error.message}: add it"
    if error.validator == "enum":
        allowed = error.validator_value
        return f"{key}: {_short(error.instance)} is not allowed{options_for(error.instance, allowed)}"
    if error.instance is None and (error.validator, error.validator_value) == ("type", "object"):
        needed = ", ".join(f"{name}: ..." for name in error.schema.get("required", ()))
        return f"{key}: is empty: write {{{needed}}}"
    if error.validator == "uniqueItems":
        repeated = next(one for place, one in enumerate(error.instance) if one in error.instance[:place])
        return f"{key}: {_short(repeated)} is repeated in {_short(error.instance)}; write it once"
    if error.validator in ("anyOf", "oneOf"):
        # If one of the types is right, the others are not what was meant.
        meant = [part for part in error.context if part.validator not in ("type", "const") or part.relative_path] or error.context
        if len(meant) == 1:
            return explain(meant[0], prefix)
        hints = (_hint_about_type(part.instance, part.validator_value) for part in meant if part.validator == "type")
        return f"{key}: {', and '.join(map(_said, meant))}{next(filter(None, hints), '')}"
    # YAML reads 1e-3 as text: its numbers have a dot before the e and a sign after it.
    power = error.validator == "type" and re.fullmatch(r"([+-]?\d+)(\.\d*)?e([+-]?)(\d+)", str(error.instance), re.IGNORECASE)
    hint = f"; write {power[1]}{power[2] or '.0'}e{power[3] or '+'}{power[4]}" if power else ""
    if power and "number" not in error.validator_value:  # but a whole one
        hint = f"; write {float(power[0]):.0f}" if float(power[0]).is_integer() else ""
    if error.validator == "type" and not hint:
        hint = _hint_about_type(error.instance, error.validator_value)
    if error.instance in ("", [], {}) and error.validator in ("minLength", "minItems", "minProperties", "pattern"):
        hint = "; it is empty: write a value"
    elif error.validator == "pattern" and (examples := error.schema.get("examples")):
        hint = f"; write it like {examples[0]}"
    return f"{key}: {_said(error)} (value: {_short(error.instance)}){hint}"
