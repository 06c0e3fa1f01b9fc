"""Collect the runs of one figure in one tidy table."""

from pathlib import Path

from compositional.records import provenance
from compositional.stages.aggregate import aggregate
from compositional.stages.shared.job import logged

sources, table = [Path(path) for path in snakemake.input.sources], Path(snakemake.output.table)
with logged(snakemake.log[0], snakemake.params.code):
    with provenance.recording(Path(snakemake.output.provenance), [table], code=snakemake.params.code["fingerprint"]) as record:
        aggregate(sources, table)
        record["made_from"] = provenance.summary([provenance.read(Path(path)) for path in snakemake.input.records])
        record["inputs"] = provenance.digests(Path("results"), sources)
