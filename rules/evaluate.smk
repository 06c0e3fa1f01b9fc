# One rule per pack, as for training.
for pack in PACKS["evaluate"]:

    rule:
        name:
            pack.name
        input:
            made_from(pack),
        output:
            update(pack.outputs),
        log:
            f"results/logs/evaluate/{pack.label}.log",
        priority: FIRST
        conda:
            "../envs/environment.yaml"
        threads: 1
        resources:
            **pack.resources,
            # In minutes. Evaluating a run takes seconds, and short jobs wait less in a queue.
            runtime=lambda wildcards, attempt, runs=len(pack.runs): attempt * (15 + runs),
        message:
            f"Evaluating {pack.title}"
        shell:
            'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/evaluate.py" results/recipes/evaluate_"$(basename {log:q} .log)".json {log:q}'
