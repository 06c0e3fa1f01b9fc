"""Collect the runs of one figure in one tidy table."""

from pathlib import Path

from compositional.stages.aggregate import aggregate
from compositional.stages.job import logged

with logged(snakemake.log[0]):
    aggregate([Path(path) for path in snakemake.input], Path(snakemake.output[0]))
