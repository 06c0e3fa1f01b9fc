"""Train the runs of one pack."""

from pathlib import Path

from compositional.stages.shared.job import logged
from compositional.stages.train import train_pack

with logged(snakemake.log[0], snakemake.params.code) as log:
    train_pack(
        Path(snakemake.input.split),
        [Path(path).parent for path in snakemake.output.run],
        family=snakemake.params.family,
        numerics=snakemake.params.numerics,
        results=Path("results"),
        name=Path(snakemake.log[0]).stem,
        device=snakemake.config["device"],
        jobs_per_gpu=snakemake.config["jobs_per_gpu"],
        checkpoint_seconds=snakemake.config["checkpoint_seconds"],
        log=log,
    )
