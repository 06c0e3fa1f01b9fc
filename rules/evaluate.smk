# One rule per pack, as for training.
for pack in PACKS:

    rule:
        name:
            f"evaluate_{pack.name}"
        input:
            split=f"results/splits/{pack.family[0]}",
            weights=pack.files("results", "weights.safetensors"),
            run=pack.files("results", "run.json"),
        output:
            metrics=pack.files("results", "metrics.csv"),
            provenance=pack.files("results", "evaluation.json"),
        log:
            f"results/logs/evaluate/{pack.name}.log",
        benchmark:
            f"results/benchmarks/evaluate/{pack.name}.tsv"
        conda:
            "../envs/environment.yaml"
        threads: 1
        resources:
            **DEVICE_RESOURCES,
            # Minutes: evaluation takes seconds a run, so a short job finds its place in the queue sooner.
            runtime=lambda wildcards, attempt, runs=len(pack.runs): attempt * (15 + runs),
        params:
            family=CONFIGURATION.family_parameters(pack.family),
            code=code_of("evaluate", *CONFIGURATION.modules(pack.family)),
        message:
            f"Evaluating {len(pack.runs)} runs of {'/'.join(pack.family)}"
        script:
            "../workflow/scripts/evaluate.py"
