"""Draw one figure from its table."""

from pathlib import Path

from compositional.stages.job import logged
from compositional.stages.plot import plot

with logged(snakemake.log[0]):
    plot(
        snakemake.params.figure["module"],
        Path(snakemake.input[0]),
        snakemake.params.figure["options"],
        pdf=Path(snakemake.output.pdf),
        png=Path(snakemake.output.png),
        caption=Path(snakemake.output.caption),
    )
