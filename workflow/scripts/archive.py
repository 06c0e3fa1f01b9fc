"""Pack sources, results and their description into one file."""

import json
from pathlib import Path

from compositional.archive import bundle as archive
from compositional.stages.shared.job import logged

with logged(snakemake.log[0], snakemake.params.code):
    listed = json.loads(Path(snakemake.input[0]).read_text())
    archive.write(Path(snakemake.output[0]), Path("results"), listed, data=snakemake.params.data)
