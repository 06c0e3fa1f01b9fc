rule split:
    input:
        made_from(lambda wildcards: PLAN.recipes.split(wildcards.task)),
    output:
        update(directory("results/splits/{task}")),
        update("results/splits/{task}.provenance.json"),
    log:
        "results/logs/split/{task}.log",
    # Splits come before any training, because the longest training may wait for the last split.
    priority: FIRST
    localrule: True
    conda:
        "../envs/environment.yaml"
    # A task that is generated in parallel gets all cores: Snakemake reduces larger numbers to that.
    threads: lambda wildcards: 64 if PLAN.recipes.configuration.parallel(wildcards.task) else 1
    resources:
        host=1,  # slurm/config.v9+.yaml limits it
    params:
        recipe=lambda wildcards: PLAN.recipes.split(wildcards.task).name,
    message:
        "Splitting {wildcards.task}"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/split.py" results/recipes/{params.recipe}.json {log:q} {threads}'
