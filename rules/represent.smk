# What runs represent, measured on their weights only where a figure asks for it. One rule per pack, as for training.
for pack in PACKS:

    rule:
        name:
            f"represent_{pack.name}"
        input:
            split=f"results/splits/{pack.family[0]}",
            weights=pack.files("results", "weights.safetensors"),
            run=pack.files("results", "run.json"),
        output:
            representations=pack.files("results", "representations.csv"),
            activations=pack.files("results", "activations.safetensors"),
            vectors=pack.files("results", "vectors.csv"),
            provenance=pack.files("results", "representation.json"),
        log:
            f"results/logs/represent/{pack.name}.log",
        benchmark:
            f"results/benchmarks/represent/{pack.name}.tsv"
        conda:
            "../envs/environment.yaml"
        threads: 1
        resources:
            **DEVICE_RESOURCES,
            runtime=lambda wildcards, attempt, runs=len(pack.runs): attempt * (15 + runs),
        params:
            family=CONFIGURATION.family_parameters(pack.family),
            code=code_of("represent", *CONFIGURATION.modules(pack.family)),
        message:
            f"Measuring the representations of {len(pack.runs)} runs of {'/'.join(pack.family)}"
        script:
            "../workflow/scripts/represent.py"
