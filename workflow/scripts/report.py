"""Write the page about a build: python workflow/scripts/report.py results/recipes/NAME.json LOG"""

from pathlib import Path

from compositional import files
from compositional.stages.report import render
from compositional.stages.shared.job import told

with told() as (content, _), files.replacing(Path("results/report.html")) as temporary:
    temporary.write_text(render(Path("results"), content["recipe"]), encoding="utf-8")
