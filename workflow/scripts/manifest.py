"""List every artifact of a build with its sha256: python workflow/scripts/manifest.py results/recipes/NAME.json LOG"""

from pathlib import Path

from compositional import files
from compositional.archive import bundle
from compositional.planning.archived import LOCK
from compositional.records.order import in_order
from compositional.stages.shared.job import told

results = Path("results")
with told() as (content, _):
    recipe = content["recipe"]
    records, raw = [results / record for record in recipe["of"]], map(Path, recipe["raw"])
    config = in_order(recipe["config"], recipe["order"])
    listed = bundle.manifest(results, records, raw, figures=recipe["figures"], config=config, lock=Path(LOCK))
    files.write_json(results / "manifest.json", listed)
