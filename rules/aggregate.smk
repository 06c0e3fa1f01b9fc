rule aggregate:
    input:
        figure_sources,
    output:
        table="results/tables/{figure}.csv",
        provenance="results/tables/{figure}.provenance.json",
    log:
        "results/logs/aggregate/{figure}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        code=lambda wildcards: code_of("aggregate", *collectors_of(wildcards.figure)),
    message:
        "Collecting the table of {wildcards.figure}"
    script:
        "../workflow/scripts/aggregate.py"
