"""Where results and their records are, below the results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compositional import files
from compositional.records import provenance
from compositional.records.provenance import RUN_RECORDS, SUFFIX
from compositional.runs import Run

STAGES = {"train": "run.json", "evaluate": "evaluation.json", "represent": "representation.json"}  # records, by stage
ENDINGS = {"splits": ("",), "tables": (".csv",), "figures": (".pdf", ".png", ".rst")}  # other results: the files of one record


def recipe_in(path: Path) -> dict[str, Any]:
    """The content of a recipe file, whose name ends with the beginning of its digest.

    Raises:
        ValueError: the file was altered or damaged.
    """
    try:
        content = provenance.read(path)
    except ValueError:
        content = {}
    if not path.stem.endswith(recipe_name("", content)):
        raise ValueError(f"{path} was altered or damaged. Call the same command again, which writes it again")
    return content


def recipe_name(of: str, content: dict[str, Any]) -> str:
    """The name of a recipe file without its ending."""
    return f"{of}__{files.digest(content)[:16]}"


def record_of_run(run: Run, name: str) -> str:
    """The path of one of a run's RUN_RECORDS."""
    return f"runs/{run.path}/{name}"


def record_of(kind: str, name: str) -> str:
    """The path of the record of a split, table or figure, such as record_of("tables", "ablation")."""
    return f"{kind}/{name}{SUFFIX}"


def record_beside(path: Path) -> Path:
    """The record that belongs to a result's file or folder, or to a file in such a folder."""
    for name, made in RUN_RECORDS.items():
        if path.name in (name, *made):
            return path.with_name(name)
    folder = next((one for one in (path, *path.parents) if one.parent.name == "splits"), path)
    return folder.with_name(f"{folder.name.partition('.')[0]}{SUFFIX}")


def sources_of(recipe: dict[str, Any]) -> list[str]:
    """The files that a table is made from according to its recipe: files of every run, or the splits if it shows examples."""
    if recipe["sources"] == ["split"]:
        return [path.removesuffix(SUFFIX) for path in recipe["of"]]
    runs = dict.fromkeys(str(Path(path).parent) for path in recipe["of"])
    return [f"{run}/{name}" for name in recipe["sources"] for run in runs]
