"""Draw one figure from its table."""

from pathlib import Path

from compositional.records import provenance
from compositional.stages.shared.job import logged
from compositional.stages.plot import plot

table = Path(snakemake.input.table)
outputs = {name: Path(snakemake.output[name]) for name in ("pdf", "png", "caption")}
described = {"figure": snakemake.params.figure, "code": snakemake.params.code["fingerprint"]}
with logged(snakemake.log[0], snakemake.params.code):
    with provenance.recording(Path(snakemake.output.provenance), list(outputs.values()), **described) as record:
        plot(snakemake.params.figure["module"], table, snakemake.params.figure["options"], **outputs)
        record["made_from"] = provenance.read(Path(snakemake.input.provenance)).get("made_from")
        record["inputs"] = provenance.digests(Path("results"), [table])
