"""Fetch one canonical raw file: python workflow/scripts/download.py results/raw/DATASET/FILE LOG SOURCE..."""

import sys
from pathlib import Path

from compositional.stages import download
from compositional.stages.shared.job import logged

place, log, *order = sys.argv[1:]
with logged(Path(log)) as stream:
    source = download.fetch(Path(place).parent.name, Path(place).name, Path(place), order)
    print(f"from {source}", file=stream)
