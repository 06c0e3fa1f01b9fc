# A mirror in the environment has priority over the configuration. These are not parameters: a file's source does not change it.
with refusals.in_a_sentence():
    os.environ[surroundings.MIRROR] = surroundings.mirror(os.environ, config["mirror"])
os.environ.update(COMPOSITIONAL_SOURCES=" ".join(config["sources"]))


rule download:
    output:
        update("results/raw/{dataset}/{file}"),  # fetched into another file, which replaces it: a failure must not lose it
    log:
        "results/logs/download/{dataset}/{file}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    resources:
        host=1,  # slurm/config.v9+.yaml limits it
    params:
        content=lambda wildcards: content_of(wildcards.dataset, wildcards.file),
    message:
        "Fetching {wildcards.dataset}/{wildcards.file}"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/download.py" {output:q} {log:q} $COMPOSITIONAL_SOURCES'
