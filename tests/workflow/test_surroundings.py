"""A build in hostile surroundings has the bytes of a clean one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fontTools.ttLib import TTFont
from matplotlib import get_data_path
from support.project import ROOT, Project

from compositional.records import provenance

pytestmark = pytest.mark.workflow

# The files in the home folder, by path.
HOME = {
    ".gitconfig": "[log]\n showSignature = true\n[status]\n showUntrackedFiles = no\n[core]\n fsmonitor = false\n",
    ".bashrc": "exit 3\n",
    "bash_env": "exit 3\n",
    ".config/matplotlib/matplotlibrc": "text.usetex: True\nfont.size: 30\nbackend: nonsense\naxes.facecolor: red\n",
    ".config/matplotlib/stylelib/classic.mplstyle": "font.size: 30\n",
    ".numba_config.yaml": "disable_jit: 1\n",
    "packages/safetensors.py": "raise ImportError('a package of the user')\n",  # only jobs import it
}
VARIABLES = {
    "LC_ALL": "C",
    "LANG": "tr_TR.ISO-8859-9",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONOPTIMIZE": "2",
    "PYTHONHASHSEED": "7",
    "TZ": "Pacific/Kiritimati",
    "ATEN_CPU_CAPABILITY": "default",
    "DNNL_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": "AVX2",
    "NUMBA_DISABLE_JIT": "1",
    "OMP_NUM_THREADS": "7",
    "CUDA_VISIBLE_DEVICES": "NoDevFiles",
    "MPLBACKEND": "nonsense",
    "GIT_DIR": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere",
}


def digests(folder: Path) -> dict[str, dict[str, Any]]:
    """The reproducible part of every record in a results folder: the digests of its files, and how they were made."""
    paths = [
        path for path in folder.rglob("*.json") if path.name in provenance.RUN_RECORDS or path.name.endswith(provenance.SUFFIX)
    ]
    return {str(path.relative_to(folder)): provenance.lasting(provenance.vouched(path) or {}) for path in paths}


@pytest.fixture
def surroundings(tmp_path) -> dict[str, str]:
    for name, text in HOME.items():
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / name).write_text(text)
    # A font that pretends to be the one with which figures are drawn.
    font = TTFont(Path(get_data_path()) / "fonts/ttf/cmr10.ttf")
    for record in font["name"].names:
        record.string = "DejaVu Sans" if record.nameID in (1, 4) else record.toUnicode()
    for folder in (".fonts", ".local/share/fonts"):
        (tmp_path / "home" / folder).mkdir(parents=True)
        font.save(tmp_path / "home" / folder / "DejaVuSans.ttf")
    own = {"PYTHONPATH": str(tmp_path / "home" / "packages")}
    own |= {
        "HOME": str(tmp_path / "home"),
        "BASH_ENV": str(tmp_path / "home" / "bash_env"),
        "MPLCONFIGDIR": str(tmp_path / "home"),
    }
    return {name: value for name, value in os.environ.items() if name != "MATPLOTLIBRC"} | VARIABLES | own


def test_the_bytes_are_those_of_a_clean_build(archived_project, surroundings, tmp_path):
    """The folder's name has a space, results are elsewhere, and the umask allows no other user to read."""
    project = Project(tmp_path / "a folder")
    (project.folder / "overlay.yaml").write_bytes((archived_project.folder / "overlay.yaml").read_bytes())
    (tmp_path / "elsewhere").mkdir()
    (project.folder / "results").symlink_to(tmp_path / "elsewhere")
    (project.folder / "matplotlibrc").write_text("font.size: 30\n")
    words = project.command("results/figures/ablation.pdf", "results/report.html", overlay="overlay.yaml")
    done = subprocess.run(
        words, cwd=project.folder, env=surroundings, umask=0o077, capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    clean = archived_project.folder / "results"
    assert digests(project.folder / "results") == digests(clean)
    for name in ("figures/ablation.pdf", "figures/ablation.png", "figures/ablation.rst", "tables/ablation.csv"):
        assert (project.folder / "results" / name).read_bytes() == (clean / name).read_bytes(), name
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "elsewhere").rglob("*.csv")} == {0}


def test_the_versions_that_are_planned_are_those_of_jobs(tmp_path):
    """Modules of clusters put packages of other versions into PYTHONPATH; jobs do not search it, unless it is given to them."""
    project = Project(tmp_path / "project")
    project.keep_studies("compositional_regularization")
    (tmp_path / "theirs" / "numpy-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "theirs" / "numpy-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n")
    target, theirs = "results/splits/digits_concat", str(tmp_path / "theirs")
    project.snakemake(target, PYTHONPATH=theirs)
    assert '-> "1.0"' in project.snakemake("-n", target, COMPOSITIONAL_PYTHONPATH=theirs)


def test_braces_in_the_path_are_refused_before_anything_is_installed(tmp_path):
    folder = tmp_path / "a{b}"
    folder.mkdir()
    for name in ("Makefile", "envs"):
        (folder / name).symlink_to(ROOT / name)
    done = subprocess.run(["make", "env"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "path without braces" in done.stdout
    assert not (folder / ".venv").exists()
