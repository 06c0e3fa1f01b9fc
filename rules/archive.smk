# What is made of a whole build: the manifest of its artifacts, the archive, and the report. `archive:` in the configuration says of
# which figures.
rule manifest:
    """results/manifest.json: the artifacts of a build"""
    input:
        of_one(lambda wildcards: ARCHIVED.manifest(), ARCHIVED.why),
    output:
        "results/manifest.json",
    log:
        "results/logs/manifest.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        recipe=lambda wildcards: ARCHIVED.manifest().name,
    message:
        "Listing the artifacts of a build"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/manifest.py" results/recipes/{params.recipe}.json {log:q}'


rule archive:
    """results/archive.zip: sources, tables, figures and where they come from"""
    input:
        of_one(lambda wildcards: ARCHIVED.archive(), ARCHIVED.why),
    output:
        "results/archive.zip",
    log:
        "results/logs/archive.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        recipe=lambda wildcards: ARCHIVED.archive().name,
    message:
        "Archiving sources and results"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/archive.py" results/recipes/{params.recipe}.json {log:q}'


rule report:
    """results/report.html: figures, tables and every run on one page"""
    input:
        of_one(lambda wildcards: ARCHIVED.report(OPTIONS), ARCHIVED.why),
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        recipe=lambda wildcards: ARCHIVED.report(OPTIONS).name,
    message:
        "Writing the report"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/report.py" results/recipes/{params.recipe}.json {log:q}'
