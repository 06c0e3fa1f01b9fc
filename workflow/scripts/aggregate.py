"""Collect the runs of one figure in one tidy table: python workflow/scripts/aggregate.py results/recipes/NAME.json LOG"""

from compositional.stages import aggregate
from compositional.stages.shared.job import told

with told() as (content, log):
    aggregate.perform(content, log)
