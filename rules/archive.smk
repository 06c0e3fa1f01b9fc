# What is made of a whole build: the manifest of its artifacts, the archive, and the report. `archive:` in the configuration says of
# which figures.
rule manifest:
    input:
        records=archived_records(),
        raw=sorted({path for task in ARCHIVED_TASKS for path in raw_files_of(task)}),
        # Whole: an artifact that is gone is made again.
        runs=archived_runs("weights.safetensors", "history.csv"),
        figures=expand("results/figures/{figure}.{kind}", figure=ARCHIVED, kind=["pdf", "png", "rst"]),
        lock=f"{workflow.basedir}/envs/requirements.txt",
    output:
        "results/manifest.json",
    log:
        "results/logs/manifest.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        figures=ARCHIVED,
        config=CONFIGURATION.portable,
        sources=lambda wildcards: digest_of_sources(),
        code=lambda wildcards: code_of("manifest"),
    message:
        "Listing the artifacts of {params.figures}"
    script:
        "../workflow/scripts/manifest.py"


rule archive:
    input:
        "results/manifest.json",
    output:
        "results/archive.zip",
    log:
        "results/logs/archive.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        data=CONFIGURATION.config["archive"]["data"],
        code=lambda wildcards: code_of("archive"),
    message:
        "Archiving sources and results"
    script:
        "../workflow/scripts/archive.py"


rule report:
    input:
        records=archived_records(),
        figures=expand("results/figures/{figure}.{kind}", figure=ARCHIVED, kind=["pdf", "png", "rst"]),
        template=f"{workflow.basedir}/workflow/report/page.html",
        lock=f"{workflow.basedir}/envs/requirements.txt",
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        figures=FIGURES,
        config=CONFIGURATION.portable,
        # Behind targets: what follows --configfile is taken for one more file.
        options=lambda wildcards: shlex.join(
            ["--configfile", *map(os.path.relpath, workflow.config_settings.configfiles)]
            if workflow.config_settings.configfiles
            else []
        ),
        besides=lambda wildcards: built_besides(),
        code=lambda wildcards: code_of("report"),
    message:
        "Writing the report"
    script:
        "../workflow/scripts/report.py"
