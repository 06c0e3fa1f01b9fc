rule split:
    input:
        raw=raw_files,
        splits=lambda wildcards: [f"results/splits/{task}" for task in CONFIGURATION.built_from(wildcards.task)[0]],
        metrics=lambda wildcards: [f"results/runs/{run.path}/metrics.csv" for run in CONFIGURATION.built_from(wildcards.task)[1]],
    output:
        split=directory("results/splits/{task}"),
        provenance="results/splits/{task}.provenance.json",
    log:
        "results/logs/split/{task}.log",
    benchmark:
        "results/benchmarks/split/{task}.tsv"
    # Before any training: the longest may wait for the last split.
    priority: 1 + max(map(work_of, PACKS), default=0)
    localrule: True
    conda:
        "../envs/environment.yaml"
    # A task that is generated in parallel gets all cores: more than there are counts as all.
    threads: lambda wildcards: 64 if CONFIGURATION.parallel(wildcards.task) else 1
    params:
        split=lambda wildcards: CONFIGURATION.split_parameters(wildcards.task),
        dataset=lambda wildcards: CONFIGURATION.dataset(wildcards.task),
        code=lambda wildcards: code_of("split", CONFIGURATION.module("tasks", wildcards.task)),
    message:
        "Splitting {wildcards.task}"
    script:
        "../workflow/scripts/split.py"
