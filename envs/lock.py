"""Writes what follows from the locks with hashes, as `make lock` does: python envs/lock.py.

For each list of packages, NAME.txt: its pins without hashes, for PyTorch's builds without CUDA, too. A list names what it needs
beside requirements.lock. environment.yaml is the conda form of requirements.txt.
"""

import re
from pathlib import Path

from packaging.requirements import Requirement

FOLDER = Path(__file__).parent
LINUX = {
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "python_version": "3.11",
    "python_full_version": "3.11.9",
}
HEADER = """\
# Written by `make lock` from requirements.txt: the same pins, for snakemake --sdm conda.
channels: [conda-forge, nodefaults]
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def entries(name: str) -> dict[Requirement, str]:
    """The packages of a lock, and how they stand there, with their hashes."""
    blocks = re.split(r"\n(?=\S)", (FOLDER / f"{name}.lock").read_text(encoding="utf-8").strip())
    return {Requirement(block.partition(" \\\n")[0]): block for block in blocks}


def pins(name: str) -> str:
    """The text of NAME.txt."""
    here = [about for about in entries(name) if about.marker is None or about.marker.evaluate(LINUX)]
    left_out = re.compile("nvidia|triton|cuda|setuptools")
    return "".join(f"{about.name}{about.specifier}\n" for about in here if not left_out.match(about.name))


def environment() -> str:
    """The conda environment file's text."""
    return HEADER + "".join(f"      - {pin}\n" for pin in pins("requirements").split())


if __name__ == "__main__":
    runtime = {about.name for about in entries("requirements")}
    for name in ("optional", "development"):
        kept = [block for about, block in entries(name).items() if about.name not in runtime]
        (FOLDER / f"{name}.lock").write_text("\n".join(kept) + "\n", encoding="utf-8")
    for name in ("requirements", "optional", "development"):
        (FOLDER / f"{name}.txt").write_text(pins(name), encoding="utf-8")
    (FOLDER / "environment.yaml").write_text(environment(), encoding="utf-8")
