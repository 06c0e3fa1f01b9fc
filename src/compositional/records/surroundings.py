"""What of the user's surroundings reaches a build: the one place that sets the environment of jobs and of calls of git.

What could change a result's bytes is not passed on. It needs no package: what checks an archive uses it, too.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import MutableMapping
from pathlib import Path

# Names that begin so are not passed to jobs: variables that choose instructions, algorithms or precision of the libraries that
# compute, or that change what Python, a shell, or a drawing does.
SHUT_OUT = (
    *("ATEN_", "BLIS_", "CUBLAS", "CUDNN_", "DNNL_", "FBGEMM_", "FLEXIBLAS", "GLIBC_TUNABLES", "GOTO_", "INTEL_ISA", "KMP_"),
    *("MKL_", "NPY_", "NUMBA_", "NVIDIA_TF32_OVERRIDE", "OMP_", "ONEDNN_", "OPENBLAS_", "TORCH"),
    *("BASH_ENV", "COVERAGE_", "LANG", "LC_", "LD_AUDIT", "LD_PRELOAD", "MATPLOTLIB", "MPL", "PYTHON"),
)
KEPT = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
SET = {
    "LC_ALL": "C.UTF-8",
    "PYTHONUTF8": "1",
    "PYTHONNOUSERSITE": "1",
    "MATPLOTLIBRC": os.devnull,
    "MPLBACKEND": "Agg",
}
PATHS = "COMPOSITIONAL_PYTHONPATH"  # folders that jobs' Python searches all the same, where a cluster needs some
DEVICES = "CUDA_VISIBLE_DEVICES"
# Of git's settings, those that change what it answers here. What git ignores it goes on ignoring: no archive may hold that.
_GIT = (
    "log.showSignature=false",
    "core.fsmonitor=false",
    f"core.attributesFile={os.devnull}",
    "status.showUntrackedFiles=normal",
)


def settle(environment: MutableMapping[str, str], root: Path) -> None:
    """Make an environment that of jobs; root: the folder of the sources.

    Jobs import the package from there, installed or not, on this machine and on compute nodes, with this Python or the one that
    is deployed for them.
    """
    for name in [name for name in environment if name.startswith(SHUT_OUT) and name not in KEPT]:
        del environment[name]
    python = [str(Path(sys.executable).parent), environment.get("PATH", "")]
    environment.update(SET)
    environment.update(
        # By its name in the environment: as text of a rule, a folder that is moved would be other code for Snakemake.
        COMPOSITIONAL_SCRIPTS=str(root / "workflow" / "scripts"),
        PYTHONPATH=os.pathsep.join(filter(None, [str(root / "src"), environment.get(PATHS)])),
        PATH=os.pathsep.join(filter(None, python)),
    )
    # Schedulers have words for "none", such as NoDevFiles; no library takes them for a device.
    if not re.match(r"-?\d|GPU-|MIG-|$", environment.get(DEVICES, "")):
        environment[DEVICES] = ""


def git(folder: Path, *words: str) -> str:
    """What git answers in a folder, whatever a hook exports or the user's settings say.

    Raises:
        OSError: there is no git.
        subprocess.CalledProcessError: its `stderr` says why there is no answer.
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
    """CPU cores that this process may keep busy: those it may run on, or what a container's quota (cgroup v1 or v2) leaves.

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
        # A container may see its own group as the root, or by its name outside, which is not there.
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
            except (OSError, ValueError):  # "max" is no number
                continue
    return max(1, math.floor(min(quotas)))
