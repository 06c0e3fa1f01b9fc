rule aggregate:
    input:
        made_from(lambda wildcards: PLAN.recipes.table(wildcards.figure)),
    output:
        update("results/tables/{figure}.csv"),
        update("results/tables/{figure}.provenance.json"),
    log:
        "results/logs/aggregate/{figure}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    resources:
        host=1,  # slurm/config.v9+.yaml limits it
    params:
        recipe=lambda wildcards: PLAN.recipes.table(wildcards.figure).name,
    message:
        "Collecting the table of {wildcards.figure}"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/aggregate.py" results/recipes/{params.recipe}.json {log:q}'
