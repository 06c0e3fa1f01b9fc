"""Train the runs of one pack: python workflow/scripts/train.py results/recipes/NAME.json LOG"""

from compositional.stages import train
from compositional.stages.shared.job import told

with told() as (content, log):
    train.perform(content, log)
