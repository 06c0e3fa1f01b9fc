rule download:
    output:
        "results/raw/{dataset}/{file}",
    params:
        code=lambda wildcards: code_of("download", f"datasets.{wildcards.dataset}"),
    log:
        "results/logs/download/{dataset}/{file}.log",
    message:
        "Fetching {wildcards.dataset}/{wildcards.file}"
    localrule: True
    script:
        "../workflow/scripts/download.py"
