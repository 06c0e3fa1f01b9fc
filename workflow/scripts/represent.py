"""Measure the representations of the runs of one pack."""

from pathlib import Path

from compositional.stages.shared.job import logged
from compositional.stages.represent import represent_pack

with logged(snakemake.log[0], snakemake.params.code) as log:
    represent_pack(
        Path(snakemake.input.split),
        [Path(path).parent for path in snakemake.output.representations],
        family=snakemake.params.family,
        code=snakemake.params.code["fingerprint"],
        device=snakemake.config["device"],
        jobs_per_gpu=snakemake.config["jobs_per_gpu"],
        log=log,
    )
