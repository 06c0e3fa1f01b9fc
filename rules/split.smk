def raw_files(wildcards):
    dataset = CONFIGURATION.dataset(wildcards.task)
    return [f"results/raw/{dataset}/{name}" for name in CONFIGURATION.raw_files(wildcards.task)]


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
    params:
        split=lambda wildcards: CONFIGURATION.split_parameters(wildcards.task),
        dataset=lambda wildcards: CONFIGURATION.dataset(wildcards.task),
        code=lambda wildcards: code_of("split", CONFIGURATION.module("tasks", wildcards.task)),
    message:
        "Splitting {wildcards.task}"
    script:
        "../workflow/scripts/split.py"
