rule aggregate:
    input:
        figure_sources,
    output:
        "results/tables/{figure}.csv",
    log:
        "results/logs/aggregate/{figure}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        code=code_of("aggregate"),
    message:
        "Collecting the table of {wildcards.figure}"
    script:
        "../workflow/scripts/aggregate.py"
