"""Which parts of the user's environment reach a build and calls of git.

Anything that could change a result's bytes is removed. This module imports no package, because checking an archive uses it, too.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

# Variables whose names start like this are removed from the environment of jobs: they choose instructions, algorithms or
# precision of numerical libraries, or change the behavior of Python, shells or plots.
SHUT_OUT = (
    *("ATEN_", "BLIS_", "CUBLAS", "CUDNN_", "DISABLE_ADDMM", "DNNL_", "FBGEMM_", "FLEXIBLAS", "GLIBC_TUNABLES", "GOTO_"),
    *("INTEL_ISA", "KMP_", "MKL_", "NPY_", "NUMBA_", "NVIDIA_TF32_OVERRIDE", "OMP_", "ONEDNN_", "OPENBLAS_"),
    *("PYTORCH_TUNABLEOP", "TORCH"),
    *("BASH_ENV", "COVERAGE_", "LANG", "LC_", "LD_AUDIT", "LD_PRELOAD", "MATPLOTLIB", "MPL", "PYTHON"),
)
KEPT = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
SET = {
    # Pages of 2 MB, and memory that a step frees stays with the process: faster training (docs/performance.md), the same bytes.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776",
    "LC_ALL": "C.UTF-8",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",  # a task that goes through a set is made again with the same bytes
    "PYTHONNOUSERSITE": "1",
    "MATPLOTLIBRC": os.devnull,
    "MPLBACKEND": "Agg",
}
PATHS = "COMPOSITIONAL_PYTHONPATH"  # folders that jobs' Python searches in addition, if a cluster needs some
DEVICES = "CUDA_VISIBLE_DEVICES"
MIRROR = "COMPOSITIONAL_MIRROR"
# Settings of git that change its answers. What git ignores stays ignored: archives must not contain it.
_GIT = (
    "log.showSignature=false",
    "core.fsmonitor=false",
    f"core.attributesFile={os.devnull}",
    "status.showUntrackedFiles=normal",
)


def settle(environment: MutableMapping[str, str], root: Path) -> None:
    """Turn an environment into the environment of jobs. root: the folder of the sources.

    Jobs import the package from `root`, whether it is installed or not: on this machine and on compute nodes, with this Python or
    the one that is deployed for them.
    """
    for name in [name for name in environment if name.startswith(SHUT_OUT) and name not in KEPT]:
        del environment[name]
    python = [str(Path(sys.executable).parent), environment.get("PATH", "")]
    environment.update(SET)
    environment.update(
        # Rules refer to this variable: with the path in their text, a moved folder would be changed code for Snakemake.
        COMPOSITIONAL_SCRIPTS=str(root / "workflow" / "scripts"),
        PYTHONPATH=os.pathsep.join(filter(None, [str(root / "src"), environment.get(PATHS)])),
        PATH=os.pathsep.join(filter(None, python)),
    )
    # Schedulers have words for "no device", such as NoDevFiles, which libraries do not understand.
    if not re.match(r"-?\d|GPU-|MIG-|$", environment.get(DEVICES, "")):
        environment[DEVICES] = ""


def expanded(named: str) -> Path:
    """A folder as the configuration or the environment names it, perhaps with ~.

    Raises:
        FileNotFoundError: ~ stands for no folder: there is no such user, or this user has no home.
    """
    try:
        return Path(named).expanduser()
    except RuntimeError:
        raise FileNotFoundError(f"{named}: there is no home folder {named.partition('/')[0]}; write the complete path") from None


def mirror(environment: Mapping[str, str], configured: str | None = None) -> str:
    """The absolute path of the mirror folder, which the environment names before the configuration; empty if neither does.

    Raises:
        FileNotFoundError: as `expanded`.
    """
    named = environment.get(MIRROR) or configured
    return str(expanded(named).absolute()) if named else ""


def git(folder: Path, *words: str) -> str:
    """The output of git in a folder, independent of exported hooks' variables and the user's settings.

    Raises:
        OSError: git is not installed.
        subprocess.CalledProcessError: git failed; its `stderr` says why.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
    }
    options = [word for setting in _GIT for word in ("-c", setting)]
    done = subprocess.run(
        ["git", *options, *words],
        cwd=folder,
        env=inherited | {"LC_ALL": "C.UTF-8", "GIT_OPTIONAL_LOCKS": "0"},
        capture_output=True,
        check=True,
        encoding="utf-8",
        errors="surrogateescape",
    )
    return done.stdout


def cores(system: Path = Path("/")) -> int:
    """CPU cores that this process may use: those that it may run on, or fewer if a container has a quota (cgroup v1 or v2).

    system: where /proc and /sys are.
    """
    quotas = [float(len(os.sched_getaffinity(0)))]
    try:
        lines = (system / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for _, controllers, group in (line.split(":", 2) for line in lines):
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounted = system / "sys/fs/cgroup" / ("cpu" if controllers else "")
        # A container may see its own group as the root, or under its name outside, which does not exist inside.
        for path in (Path(group.lstrip("/")), *Path(group.lstrip("/")).parents):
            try:
                if controllers:
                    quota, period = (
                        (mounted / path / f"cpu.cfs_{name}_us").read_text(encoding="utf-8") for name in ("quota", "period")
                    )
                else:
                    quota, period = (mounted / path / "cpu.max").read_text(encoding="utf-8").split()
                if float(quota) > 0:
                    quotas.append(float(quota) / float(period))
            except (OSError, ValueError):  # the value "max" is not a number
                continue
    return max(1, math.floor(min(quotas)))
