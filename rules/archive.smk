# Results of a complete build: the manifest of its artifacts, the archive, and the report. `archive:` in the configuration selects
# the figures.
rule manifest:
    """results/manifest.json: the artifacts of a build"""
    input:
        made_from(lambda wildcards: PLAN.archived.manifest),
    output:
        update("results/manifest.json"),
    log:
        "results/logs/manifest.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    resources:
        host=1,  # slurm/config.v9+.yaml limits it
    params:
        recipe=lambda wildcards: PLAN.archived.manifest.name,
    message:
        "Listing the artifacts of a build"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/manifest.py" results/recipes/{params.recipe}.json {log:q}'


rule archive:
    """results/archive.zip: sources, tables, figures and their records"""
    input:
        made_from(lambda wildcards: PLAN.archived.archive),
    output:
        update("results/archive.zip"),
    log:
        "results/logs/archive.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    resources:
        host=1,  # slurm/config.v9+.yaml limits it
    params:
        recipe=lambda wildcards: PLAN.archived.archive.name,
    message:
        "Archiving sources and results"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/archive.py" results/recipes/{params.recipe}.json {log:q}'


rule report:
    """results/report.html: figures, tables and every run on one page"""
    input:
        made_from(lambda wildcards: PLAN.archived.report),
    output:
        update("results/report.html"),
    log:
        "results/logs/report.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    resources:
        host=1,  # slurm/config.v9+.yaml limits it
    params:
        recipe=lambda wildcards: PLAN.archived.report.name,
    message:
        "Writing the report"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/report.py" results/recipes/{params.recipe}.json {log:q}'
