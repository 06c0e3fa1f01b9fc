"""Write the page about a build."""

from pathlib import Path

from compositional import files
from compositional.stages import report
from compositional.stages.shared.job import logged

with logged(snakemake.log[0], snakemake.params.code):
    page = report.render(
        Path(snakemake.input.template),
        Path("results"),
        figures=snakemake.params.figures,
        config=snakemake.params.config,
        options=snakemake.params.options,
        lock=Path(snakemake.input.lock),
    )
    with files.replacing(Path(snakemake.output[0])) as temporary:
        temporary.write_text(page)
