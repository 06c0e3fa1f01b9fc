"""How a call that cannot continue ends: with a sentence instead of a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

from compositional.records import provenance
from compositional.terminal.failures import no_slurm


@contextmanager
def in_a_sentence(advice: str = "") -> Iterator[None]:
    """Report an error that the user can fix in one sentence, followed by advice. Ctrl-C is reported in one, too."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit("Stopped before anything was made.")
    except PermissionError as error:
        sys.exit(f"{error}{permitting(Path(error.filename)) if error.filename else advice}")
    except (ValueError, OSError) as error:
        sys.exit(f"{error}{advice}")


def permitting(path: Path) -> str:
    """The end of a message about a file or folder that this user may not read or write."""
    try:
        owner = f" (its owner is {path.owner()})"
    except (OSError, KeyError):  # its folder is closed, or its owner has no name
        owner = ""
    return (
        f"{owner}. Make it readable and writable, or build in a folder of your own (--directory). If several people build in one "
        "folder, it must have the setgid bit, and each of them needs umask 002"
    )


def inside(workflow: Any, name: str) -> Any:
    """An undocumented part of Snakemake, by its path from `workflow`.

    The workflow would be unreliable without it, so a Snakemake that lacks it is refused.
    """
    try:
        return attrgetter(name)(workflow)
    except AttributeError:
        sys.exit(f"This Snakemake has no workflow.{name}; use a version from envs/requirements.txt")


def before_a_build(executor: str) -> None:
    """Refuse to begin a build with an executor of Snakemake that cannot do it; warn if records will name no commit."""
    if why := provenance.without_commit():
        print(f"warning: records will name no commit although {provenance.ROOT}/.git exists: {why}", file=sys.stderr)
    if executor == "touch":
        sys.exit("--touch changes nothing here: a result's record decides whether it is out of date, not its modification time")
    if executor == "slurm" and (why := no_slurm()):
        sys.exit(why)
