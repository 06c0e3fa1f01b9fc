"""Write docs/options.md from what the modules declare.

python -m compositional.configuration.documentation
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

from compositional.configuration.figures import shared_options
from compositional.configuration.schema import check, declared_by, several
from compositional.files import replacing
from compositional.plugins import available, module_path, parsed

HEADER = """\
# Options

<!-- Written by `make docs` from the modules' declarations: edit those instead. -->

Every option of training, of each task, model, regularizer and figure, with its default. The keys of a configuration file are
explained on [another page](../config/README.md).
"""
TITLES = {
    "training.settings": "Training settings, under `training:` of a task or a model (the model wins)",
    "tasks": "Tasks, under `tasks:`",
    "models": "Models, under `models:`",
    "regularizers": "Regularizers, under `regularizers:`",
    "figures": "Figures, under `options:` of a figure",
}


def _allowed(option: dict) -> str:
    if "enum" in option:
        return ", ".join("null" if value is None else str(value) for value in option["enum"])
    bounds = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
        "multipleOf": "a multiple of",
    }
    limits = [f"{words} {option[key]}" for key, words in bounds.items() if key in option]
    items = option.get("items")
    inside = f"array of ({_allowed(items)})" if isinstance(items, dict) and items.keys() & {"type", "enum"} else "array"
    kinds = [inside if kind == "array" else kind for kind in several(option["type"])]
    return ", ".join([" or ".join(kinds), *limits])


def _default(option: dict) -> str:
    """The default, unless it violates the option's own schema: then the option must be given."""
    return "must be given" if check(option["default"], option) else f"`{json.dumps(option['default'])}`"


def _table(properties: dict[str, dict]) -> list[str]:
    if not properties:
        return ["No options.", ""]
    rows = [
        f"| `{name}` | {_allowed(option)} | {_default(option)} | {option['description']} |" for name, option in properties.items()
    ]
    return ["| option | allowed | default | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def summary_of(module: str) -> str:
    """The first paragraph of a module's docstring, in one line."""
    return " ".join((ast.get_docstring(parsed(module_path(module))) or "").split("\n\n")[0].split())


def tables() -> str:
    """All option tables, as Markdown."""
    lines: list[str] = []
    for section, title in TITLES.items():
        lines += [f"## {title}", ""]
        if section == "training.settings":
            lines += _table(declared_by(section)["PARAMETERS"])
            continue
        if section == "figures":
            lines += ["Every figure has these options. `figures:` in a configuration sets them for all figures.", ""]
            lines += _table(shared_options())
        for name in available(section):
            options = declared_by(f"{section}.{name}")["PARAMETERS"]
            lines += [f"### {name}", "", summary_of(f"{section}.{name}"), "", *_table(options)]
    return "\n".join(lines)


def page() -> str:
    """docs/options.md."""
    return f"{HEADER}\n{tables()}"


if __name__ == "__main__":
    with replacing(Path("docs/options.md")) as temporary:
        temporary.write_text(page(), encoding="utf-8")
