MIRROR = config["mirror"] or ""


rule download:
    output:
        "results/raw/{dataset}/{file}",
    log:
        "results/logs/download/{dataset}/{file}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        content=lambda wildcards: content_of(wildcards.dataset, wildcards.file),
    message:
        "Fetching {wildcards.dataset}/{wildcards.file}"
    shell:
        "python3 {workflow.basedir:q}/workflow/scripts/download.py {output:q} {log:q} mirror={MIRROR:q} {config[sources]:q}"
