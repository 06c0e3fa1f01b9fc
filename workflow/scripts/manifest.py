"""List every artifact of a build with its sha256."""

from pathlib import Path

from compositional.archive import bundle as archive
from compositional import files
from compositional.stages.shared.job import logged

with logged(snakemake.log[0], snakemake.params.code):
    listed = archive.manifest(
        Path("results"),
        [Path(path) for path in snakemake.input.records],
        [Path(path) for path in snakemake.input.raw],
        figures=list(snakemake.params.figures),
        config=snakemake.params.config,
        lock=Path(snakemake.input.lock),
    )
    files.write_json(Path(snakemake.output[0]), listed)
