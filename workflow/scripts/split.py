"""Build one task from its raw files, audited for overlap: python workflow/scripts/split.py results/recipes/NAME.json LOG"""

from compositional.stages import split
from compositional.stages.shared.job import told

with told() as (content, log):
    split.perform(content, log)
