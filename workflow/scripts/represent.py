"""Measure the representations of the runs of one pack: python workflow/scripts/represent.py results/recipes/NAME.json LOG"""

from compositional.stages import represent
from compositional.stages.shared.job import told

with told() as (content, log):
    represent.perform(content, log)
