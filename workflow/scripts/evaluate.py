"""Evaluate the runs of one pack: python workflow/scripts/evaluate.py results/recipes/NAME.json LOG"""

from compositional.stages import evaluate
from compositional.stages.shared.job import told

with told() as (content, log):
    evaluate.perform(content, log)
