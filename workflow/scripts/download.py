"""Fetch one canonical raw file."""

from pathlib import Path

from compositional.stages import download as sources
from compositional.stages.shared.job import logged

with logged(snakemake.log[0]) as log:
    source = sources.fetch(
        snakemake.wildcards.dataset,
        snakemake.wildcards.file,
        Path(snakemake.output[0]),
        snakemake.config["sources"],
        snakemake.config["mirror"],
    )
    print(f"from {source}", file=log)
