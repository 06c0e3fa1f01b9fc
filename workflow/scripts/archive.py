"""Pack sources, results and their description into one file: python workflow/scripts/archive.py results/recipes/NAME.json LOG"""

import json
from pathlib import Path

from compositional.archive import bundle
from compositional.stages.shared.job import told

results = Path("results")
with told() as (content, _):
    listed = json.loads((results / "manifest.json").read_text(encoding="utf-8"))
    bundle.write(results / "archive.zip", results, listed, data=content["recipe"]["data"])
