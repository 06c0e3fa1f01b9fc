"""The frame around a job's script. A job's recipe file is its only input besides the files that it names.

Errors go to the job's log in full, and to the terminal in one line, followed by the lines of plug-ins in the traceback.
"""

from __future__ import annotations

import resource
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from compositional.plugins import PACKAGE, module_path
from compositional.records import provenance, undeclared
from compositional.records.fingerprint import code
from compositional.records.places import recipe_in

_READS = (
    "may read no file, because results would not be made again if it changed: write what it says into the module, or let a "
    "dataset list it in FILES (docs/extending.md, Your own data)"
)
PLUGINS = ("datasets", "kinds", "tasks", "models", "regularizers", "tables", "figures")


class OtherThanPlannedError(RuntimeError):
    """Code, libraries or inputs changed after this job was planned, so its result would have a wrong recipe."""


def place_of(error: BaseException) -> str:
    """The lines of plug-ins in the traceback of an error, the innermost last; empty if there are none."""
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        folder = Path(frame.filename).parent
        if folder.parent == PACKAGE and folder.name in PLUGINS:
            lines.append(f"  {frame.filename}, line {frame.lineno}, {frame.name}: {frame.line}\n")
    return "".join(dict.fromkeys(lines))


@contextmanager
def logged(log: Path) -> Iterator[TextIO]:
    """Open a job's log. On an error, write the traceback to it and the message to the terminal, and end the job."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", buffering=1, encoding="utf-8") as stream:
        if log.parts[:2] != ("/", "dev"):  # /dev/stderr may be a file that holds more
            stream.truncate(0)
        try:
            yield stream
        except Exception as error:
            line = "\r\033[K" if sys.stderr.isatty() else ""  # clear the line of the progress bar
            # If a disk is full, one of them may still be written.
            with suppress(OSError), stream:
                traceback.print_exc(file=stream)
            with suppress(OSError):
                print(f"{line}{type(error).__name__}: {error}\n{place_of(error)}(details in {log})", file=sys.stderr, flush=True)
            sys.exit(1)


@contextmanager
def told() -> Iterator[tuple[dict[str, Any], TextIO]]:
    """The content of the recipe file that the command line names first, and the job's log, which it names second."""
    recipe, log = map(Path, sys.argv[1:3])
    began = time.monotonic()
    with logged(log) as stream:
        if not recipe.is_file():
            raise FileNotFoundError(
                f"{recipe} does not exist. Snakemake's main process writes it when a build starts (but not with --no-hooks), and "
                "it must stay until all jobs have ended. Call the same command again"
            )
        content = recipe_in(recipe)
        check(content, Path("results"))
        yield content, stream
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10
        print(f"took {time.monotonic() - began:.1f} s, {seconds:.1f} s of CPU time, at most {megabytes:.0f} MB", file=stream)


def recipes_of(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The recipes in a recipe file: one, or one per run of a pack."""
    return [content["recipe"]] if "recipe" in content else [content["common"] | own for own in content["runs"].values()]


def check(content: dict[str, Any], results: Path) -> None:
    """Stop if anything differs from what was planned.

    Raises:
        OtherThanPlannedError: the code or a library changed, or an input was made by another recipe.
    """
    recipes = recipes_of(content)
    for planned in [recipes[0][key] for key in ("code", "writing") if key in recipes[0]]:
        for module in planned["modules"]:  # so that what is compared with the plan is what runs, even if it is edited later
            imported = f"{module_path(module)}, when it is imported,"
            with undeclared.refused([], f"{imported} {_READS}", everywhere=True), undeclared.no_random_numbers(imported):
                import_module(f"{PACKAGE.name}.{module}")
        now = code(*planned["modules"])
        if now["fingerprint"] != planned["fingerprint"]:
            raise OtherThanPlannedError("the code has changed since this build began. Call the same command again")
        if now != planned:
            there = [f"{name} {version}" for name, version in now["libraries"].items() if version != planned["libraries"][name]]
            raise OtherThanPlannedError(
                f"this build was planned with other versions; this environment has {', '.join(there)}. Call the same command "
                "again, or give jobs the environment of the build"
            )
    wrong = []
    for record, digest in {record: digest for recipe in recipes for record, digest in recipe["of"].items()}.items():
        known = provenance.vouched(results / record)
        if known is None or known["recipe_digest"] != digest:
            wrong.append(f"{results / record}{' (missing or damaged)' if known is None else ''}")
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise OtherThanPlannedError(
            f"made by other options, code or versions than planned: {', '.join(wrong[:5])}{more}. Nothing was made from them. "
            "Call the same command again"
        )
