"""Evaluate the runs of one pack."""

from pathlib import Path

from compositional.stages.evaluate import evaluate_pack
from compositional.stages.shared.job import logged

with logged(snakemake.log[0], snakemake.params.code) as log:
    evaluate_pack(
        Path(snakemake.input.split),
        [Path(path).parent for path in snakemake.output.metrics],
        family=snakemake.params.family,
        code=snakemake.params.code["fingerprint"],
        device=snakemake.config["device"],
        jobs_per_gpu=snakemake.config["jobs_per_gpu"],
        log=log,
    )
