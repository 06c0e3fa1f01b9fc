"""Draw one figure from its table: python workflow/scripts/plot.py results/recipes/NAME.json LOG"""

from compositional.stages import plot
from compositional.stages.shared.job import told

with told() as (content, log):
    plot.perform(content, log)
