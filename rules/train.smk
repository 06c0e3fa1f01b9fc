# The priority of what goes before training that waits. Of evaluations, too, little should be ready: whenever a job ends, Snakemake
# looks at all inputs of all that is.
FIRST = 1 + max((pack.work for pack in PACKS["train"]), default=0)
# One rule per pack: its runs train together in one process (compositional.planning.packs says which). A run that exists is not
# trained again: the job finds it in results/store, addressed by all that it depends on.
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
        # Long jobs first, so that no core idles at the end.
        priority: pack.work
        # Where the store has all of its runs, a job only writes their files.
        localrule: MAIN and pack.stored
        conda:
            "../envs/environment.yaml"
        threads: 1
        resources:
            **resources_of(pack),
            runs=len(pack.runs),
        message:
            f"Training {pack.title}"
        shell:
            'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/train.py" results/recipes/train_"$(basename {log:q} .log)".json {log:q}'
