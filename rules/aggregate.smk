def figure_sources(wildcards):
    figure = FIGURES[wildcards.figure]
    return [f"results/runs/{run.path}/{figure['source']}" for run in figure_runs(figure)]


rule aggregate:
    input:
        figure_sources,
    output:
        "results/tables/{figure}.csv",
    log:
        "results/logs/aggregate/{figure}.log",
    localrule: True
    params:
        code=code_of("aggregate"),
    message:
        "Collecting the table of {wildcards.figure}"
    script:
        "../workflow/scripts/aggregate.py"
