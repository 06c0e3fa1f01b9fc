"""Build one task from its raw files, audited for overlap."""

from pathlib import Path

from compositional.splitting import make_split
from compositional.stages.job import logged

with logged(snakemake.log[0]):
    make_split(
        snakemake.wildcards.task,
        **snakemake.params.split,
        raw=Path("results/raw") / snakemake.params.dataset,
        folder=Path(snakemake.output[0]),
    )
