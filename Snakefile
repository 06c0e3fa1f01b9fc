# Raw data -> splits -> runs -> metrics -> tables -> figures. See README.md.

from snakemake.utils import min_version

min_version("9.14")


include: "rules/common.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/represent.smk"


# Jobs on other machines never run these rules.
if MAIN:

    include: "rules/download.smk"
    include: "rules/split.smk"
    include: "rules/aggregate.smk"
    include: "rules/plot.smk"
    include: "rules/archive.smk"

    rule all:
        """every figure of every study"""
        default_target: True
        input:
            expand("results/figures/{figure}.{kind}", figure=PLAN.recipes.figures, kind=["pdf", "png"]),


literals.compare(workflow.rules)
