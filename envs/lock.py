"""Writes envs/environment.yaml, the conda form of the lock, from envs/requirements.txt: python envs/lock.py."""

from pathlib import Path

FOLDER = Path(__file__).parent
HEADER = """\
# Written by `make lock` from requirements.txt: the same pins, for snakemake --sdm conda.
channels: [conda-forge, nodefaults]
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def environment() -> str:
    """The conda environment file's text."""
    pins = (FOLDER / "requirements.txt").read_text(encoding="utf-8").split()
    return HEADER + "".join(f"      - {pin}\n" for pin in pins)


if __name__ == "__main__":
    (FOLDER / "environment.yaml").write_text(environment(), encoding="utf-8")
