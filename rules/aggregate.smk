rule aggregate:
    input:
        sources=figure_sources,
        # What the table's record says of the runs: another record makes another one, though the numbers may be the same.
        records=figure_records,
    output:
        table="results/tables/{figure}.csv",
        provenance="results/tables/{figure}.provenance.json",
    log:
        "results/logs/aggregate/{figure}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        code=lambda wildcards: code_of("aggregate", *plan.collectors(FIGURES[wildcards.figure])),
    message:
        "Collecting the table of {wildcards.figure}"
    script:
        "../workflow/scripts/aggregate.py"
