rule split:
    input:
        raw_files,
    output:
        directory("results/splits/{task}"),
    log:
        "results/logs/split/{task}.log",
    benchmark:
        "results/benchmarks/split/{task}.tsv"
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        split=lambda wildcards: CONFIGURATION.split_parameters(wildcards.task),
        dataset=lambda wildcards: CONFIGURATION.dataset(wildcards.task),
        code=lambda wildcards: code_of("split", CONFIGURATION.module("tasks", wildcards.task)),
    message:
        "Splitting {wildcards.task}"
    script:
        "../workflow/scripts/split.py"
