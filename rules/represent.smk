# Representations of trained runs, measured only if a figure needs them. One rule per pack, as for training.
for pack in PACKS["represent"]:

    rule:
        name:
            pack.name
        input:
            made_from(pack),
        output:
            update(pack.outputs),
        log:
            f"results/logs/represent/{pack.label}.log",
        conda:
            "../envs/environment.yaml"
        threads: 1
        resources:
            **pack.resources,
            runtime=lambda wildcards, attempt, runs=len(pack.runs): attempt * (15 + runs),
        message:
            f"Measuring the representations of {pack.title}"
        shell:
            'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/represent.py" results/recipes/represent_"$(basename {log:q} .log)".json {log:q}'
