# One rule per pack: its runs train together in one process (compositional.planning.plan says which). A run that exists is not trained
# again: the job finds it in results/store, addressed by all that it depends on.
for pack in PACKS:

    rule:
        name:
            f"train_{pack.name}"
        input:
            split=f"results/splits/{pack.family[0]}",
        output:
            weights=pack.files("results", "weights.safetensors"),
            history=pack.files("results", "history.csv"),
            run=pack.files("results", "run.json"),
        log:
            f"results/logs/train/{pack.name}.log",
        benchmark:
            f"results/benchmarks/train/{pack.name}.tsv"
        # Long jobs first, so that no core idles at the end.
        priority: work_of(pack)
        conda:
            "../envs/environment.yaml"
        threads: 1
        resources:
            **DEVICE_RESOURCES,
            runs=len(pack.runs),
        params:
            family=CONFIGURATION.family_parameters(pack.family),
            numerics=numerics_of(pack.family),
            code=code_of("train", *CONFIGURATION.modules(pack.family)),
        message:
            f"Training {len(pack.runs)} runs of {'/'.join(pack.family)}"
        script:
            "../workflow/scripts/train.py"
