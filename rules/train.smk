# The priority of jobs that must precede waiting trainings. Evaluations have it, too, so that few jobs are ready at any time:
# whenever a job ends, Snakemake checks all inputs of all ready jobs.
FIRST = 1 + max(map(duration, PACKS["train"]), default=0)
# One rule per pack, whose runs train together in one process (see compositional.planning.packs). A run that exists is not trained
# again: the job finds it in results/store, addressed by everything that it depends on.
for pack in PACKS["train"]:

    rule:
        name:
            pack.name
        input:
            made_from(pack),
        output:
            update(pack.outputs),
        log:
            f"results/logs/train/{pack.label}.log",
        # Long jobs first, so that no core is idle at the end.
        priority: duration(pack)
        # If the store has all of its runs, a job only writes their files.
        localrule: MAIN and pack.stored
        conda:
            "../envs/environment.yaml"
        threads: 1
        resources:
            **pack.resources,
            runs=len(pack.runs),
            host=int(MAIN and pack.stored),  # as in rules/split.smk
        message:
            f"{'Restoring' if MAIN and pack.stored else 'Training'} {pack.title}"
        shell:
            'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/train.py" results/recipes/train_"$(basename {log:q} .log)".json {log:q}'
