"""Fetch one canonical raw file: python workflow/scripts/download.py results/raw/DATASET/FILE LOG mirror=FOLDER SOURCE..."""

import sys
from pathlib import Path

from compositional.stages import download
from compositional.stages.shared.job import logged

place, log, mirror, *order = sys.argv[1:]
with logged(Path(log)) as stream:
    # With its name: an empty word would be none.
    folder = mirror.removeprefix("mirror=")
    source = download.fetch(Path(place).parent.name, Path(place).name, Path(place), order, folder)
    print(f"from {source}", file=stream)
