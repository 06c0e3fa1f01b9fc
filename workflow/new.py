"""Write a minimal working plug-in to start from: make new KIND=model NAME=my_model

Copies the kind's template (workflow/templates/) into its folder and writes its entry for the contract test, which then passes.
"""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional.configuration.messages import options_for
from compositional.plugins import available, module_path
from compositional.runs import NAME

POINTS = module_path("models.multilayer_perceptron")
SMALL = ROOT / "tests" / "support" / "small.yaml"
# Kind of plug-in -> its folder, and its entry in SMALL.
TEMPLATES = {
    "dataset": ("datasets", "{}"),
    "figure": ("figures", "{table: [{method: [none 0, entropy 0.1], split: [train, test], metric: accuracy}]}"),
    "kind": ("kinds", "{task: quadrants, model: multilayer_perceptron}"),
    "model": ("models", "{trains_on: digits_concat, width: 16}"),
    "network": ("models", "{trains_on: digits_concat, width: 16}"),
    "regularizer": ("regularizers", "{}"),
    "task": ("tasks", "{other: {draw: 1}, train_points: 200, test_points: 60}"),
}
# Kind of plug-in -> runs that use it. What uses a dataset or a kind of task is a task, which is a plug-in, too.
GRIDS = {
    "figure": "{task: digits_concat, model: cnn, regularizers: {entropy: [0.1]}, seeds: 2}",
    "model": "{task: digits_concat, model: NAME, regularizers: {}, seeds: 2}",
    "network": "{task: digits_concat, model: NAME, regularizers: {}, seeds: 2}",
    "regularizer": "{task: digits_concat, model: cnn, regularizers: {NAME: [0.1]}, seeds: 2}",
    "task": "{task: NAME, model: multilayer_perceptron, regularizers: {}, seeds: 2}",
}


def _with_entry(text: str, section: str, name: str, entry: str) -> str:
    """The settings file with one more entry, in alphabetical order."""
    lines = text.splitlines(keepends=True)
    place = lines.index(f"{section}:\n") + 1
    while place < len(lines) and not re.match(r"\S", lines[place]):
        found = re.match(r"  (\w+):", lines[place])
        if found and found[1] > name:
            break
        place += 1
    while not lines[place - 1].strip():  # insert before the empty line that ends the section
        place -= 1
    return "".join([*lines[:place], f"  {name}: {entry}\n", *lines[place:]])


def write(kind: str, name: str) -> list[Path]:
    """Write the plug-in and its entry; returns the paths of both files.

    Raises:
        ValueError: there is no such kind of plug-in, or the name is taken or not allowed.
    """
    if kind not in TEMPLATES:
        raise ValueError(f"KIND={kind}: there is no such kind of plug-in{options_for(kind, list(TEMPLATES))}")
    section, entry = TEMPLATES[kind]
    if keyword.iskeyword(name) or name == "shared":
        raise ValueError(f"NAME={name}: choose another name, because Python or this project uses this one")
    if not re.fullmatch(NAME, name) or (kind, name) == ("regularizer", "none"):
        reserved = "; 'none' is the plain run (lambda = 0)" if kind == "regularizer" else ""
        raise ValueError(f"NAME={name!r}: a letter, then letters, digits and _, all lower case{reserved}")
    path = module_path(f"{section}.{name}")
    settings = SMALL.read_text(encoding="utf-8")
    if name in available(section) or path.with_suffix("").exists():
        raise ValueError(f"NAME={name}: {path.relative_to(ROOT)} already exists; taken: {', '.join(available(section))}")
    shutil.copyfile(ROOT / "workflow" / "templates" / f"{kind}.py", path)
    SMALL.write_text(_with_entry(settings, section, name, entry), encoding="utf-8")
    return [path, SMALL]


def use(kind: str, name: str) -> str:
    """How a build uses a new plug-in, in words: a study with a figure, and the command that builds it."""
    if kind not in GRIDS:
        models = f', and\n  KIND = ("point", "{name}") into {POINTS.relative_to(ROOT)}' if kind == "kind" else ""
        return (
            f"To build a figure with it, call make new KIND=task NAME={name}_task, write\n"
            f'  {kind.upper()} = "{name}" into the file of this task{models},\nand do what that call says.'
        )
    figure, module = (name, "") if kind == "figure" else (f"{name}_curves", "module: learning_curves, ")
    return (
        f"To build a figure with it, write these lines to config/studies/{name}.yaml:\n\n"
        f"studies:\n  {name}:\n    figures:\n      {figure}: {{{module}grids: [{GRIDS[kind].replace('NAME', name)}]}}\n\n"
        f"and call\n  snakemake results/figures/{figure}.pdf"
    )


def main() -> int:
    """Write the requested plug-in, and print what to do next."""
    if len(sys.argv) != 3:
        print(f"{__doc__.splitlines()[0]}\nKIND is one of {', '.join(TEMPLATES)}", file=sys.stderr)
        return 2
    try:
        path, settings = write(*sys.argv[1:])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    section = TEMPLATES[sys.argv[1]][0]
    print(f"Written: {path.relative_to(ROOT)}, and its small settings for the tests in {settings.relative_to(ROOT)}.")
    print(f"Its contract: {module_path(f'{section}.__init__').relative_to(ROOT)}. Its test:")
    print(f"  python -m pytest tests/unit/{section}/test_contract.py -k {sys.argv[2]}")
    print(use(*sys.argv[1:]))
    print("After `make docs`, its options are in docs/options.md. More about studies: docs/extending.md#a-figure-and-its-study.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
