# Raw data -> splits -> runs -> metrics -> tables -> figures. See README.md.

from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")


configfile: f"{workflow.basedir}/config/config.yaml"


# Not what an editor hides there while a file is open.
for study in sorted(Path(workflow.basedir, "config", "studies").glob("[!.]*.y*ml")):

    configfile: study


include: "rules/common.smk"
include: "rules/download.smk"
include: "rules/split.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/represent.smk"
include: "rules/aggregate.smk"
include: "rules/plot.smk"
include: "rules/archive.smk"


rule all:
    default_target: True
    input:
        expand("results/figures/{figure}.{kind}", figure=FIGURES, kind=["pdf", "png"]),
