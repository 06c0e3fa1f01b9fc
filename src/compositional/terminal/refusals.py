"""How a call that cannot continue ends: with a sentence instead of a traceback."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

from compositional.records import provenance
from compositional.terminal import commands
from compositional.terminal.failures import no_slurm

# The resources that the rules here, Snakemake, and its plug-in for Slurm read.
RESOURCES = (
    *("runs", "host", "gpu", "gpu_model", "gres"),
    *("_cores", "_nodes", "mem", "mem_mb", "mem_mib", "disk", "disk_mb", "disk_mib", "tmpdir", "runtime"),
    *("slurm_partition", "slurm_account", "slurm_extra", "slurm_cluster", "cluster", "clusters", "constraint", "qos", "mpi"),
    *("mem_mb_per_cpu", "nodes", "tasks", "tasks_per_node", "tasks_per_gpu", "cpus_per_task", "cpus_per_gpu"),
)
NEAR = 0.82  # partion is near partition, mem_bm is near mem_mb, and names of other plug-ins, such as lsf_extra, are not near


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


def another_system(platform: str) -> None:
    """Refuse systems other than Linux: they lack functions that a build calls, and none was tried."""
    if platform != "linux":
        sys.exit(f"Linux is needed, and this is {platform}: use a container (envs/Dockerfile) or a virtual machine")


def inside(workflow: Any, name: str) -> Any:
    """An undocumented part of Snakemake, by its path from `workflow`.

    The workflow would be unreliable without it, so a Snakemake that lacks it is refused.
    """
    try:
        return attrgetter(name)(workflow)
    except AttributeError:
        sys.exit(f"This Snakemake has no workflow.{name}; use a version from envs/requirements.txt")


def below_one(**numbers: int | None) -> None:
    """Refuse numbers of cores and jobs, by option, with which no job would ever start."""
    for option, number in numbers.items():
        if number is not None and number < 1:
            sys.exit(f"--{option} {number}: must be at least 1, on the command line and in a profile")


def misspelled_resource(names: Iterable[str]) -> str | None:
    """Why a resource has no effect: its name is almost one of RESOURCES. Snakemake accepts any name. None if there is none."""
    for name in sorted({*names}.difference(RESOURCES)):
        known = [f"slurm_{name}"] if f"slurm_{name}" in RESOURCES else difflib.get_close_matches(name, RESOURCES, 1, NEAR)
        if known:
            return f"{name}: nothing reads a resource of this name, in the profile or the command line; did you mean {known[0]}?"
    return None


def before_a_build(executor: str, resources: Iterable[str] = ()) -> None:
    """Refuse to begin a build with an executor that cannot do it, or with a misspelled resource; warn if records name no commit.

    resources: names of all that profile, command line and rules give. Commands of other executors may read any.
    """
    if executor in ("local", "slurm") and (why := misspelled_resource(resources)):
        sys.exit(why)
    if why := provenance.without_commit():
        commands.put(f"warning: records will name no commit although {provenance.ROOT}/.git exists: {why}", sys.stderr)
    if executor == "touch":
        sys.exit("--touch changes nothing here: a result's record decides whether it is out of date, not its modification time")
    if executor == "slurm" and (why := no_slurm()):
        sys.exit(why)
