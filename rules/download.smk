rule download:
    output:
        "results/raw/{dataset}/{file}",
    log:
        "results/logs/download/{dataset}/{file}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        content=content_of,
    message:
        "Fetching {wildcards.dataset}/{wildcards.file}"
    script:
        "../workflow/scripts/download.py"
