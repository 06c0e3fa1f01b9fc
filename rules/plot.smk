rule plot:
    input:
        made_from(lambda wildcards: PLAN.recipes.figure(wildcards.figure)),
    output:
        pdf=update("results/figures/{figure}.pdf"),
        png=update(report("results/figures/{figure}.png", caption="../workflow/report/figure.rst", category="Figures")),
        caption=update("results/figures/{figure}.rst"),
        provenance=update("results/figures/{figure}.provenance.json"),
    log:
        "results/logs/plot/{figure}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    resources:
        host=1,  # slurm/config.v9+.yaml limits it
    params:
        recipe=lambda wildcards: PLAN.recipes.figure(wildcards.figure).name,
    message:
        "Drawing {wildcards.figure}"
    shell:
        'python3 -P -m compositional.stages.shared.forks "$COMPOSITIONAL_SCRIPTS/plot.py" results/recipes/{params.recipe}.json {log:q}'
