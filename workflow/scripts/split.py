"""Build one task from its raw files, audited for overlap."""

import json
from pathlib import Path

from compositional.records import provenance
from compositional.stages.split import make_split
from compositional.stages.shared.job import logged

folder = Path(snakemake.output.split)
with logged(snakemake.log[0], snakemake.params.code):
    with provenance.recording(Path(snakemake.output.provenance), [folder], code=snakemake.params.code["fingerprint"]) as record:
        make_split(
            snakemake.wildcards.task,
            **snakemake.params.split,
            raw=Path("results/raw") / snakemake.params.dataset,
            folder=folder,
            raw_files=[Path(path).name for path in snakemake.input.raw],
            processes=snakemake.threads,
            splits=[Path(path) for path in snakemake.input.splits],
            metrics=[Path(path) for path in snakemake.input.metrics],
        )
        about = json.loads((folder / "task.json").read_text())
        record.update({key: about[key] for key in ("task", "dataset", "parameters", "raw_sha256", "content_sha256")})
