rule plot:
    input:
        of_one(lambda wildcards: RECIPES.figure(wildcards.figure), RECIPES.why),
    output:
        "results/figures/{figure}.pdf",
        report("results/figures/{figure}.png", caption="../workflow/report/figure.rst", category="Figures"),
        "results/figures/{figure}.rst",
        "results/figures/{figure}.provenance.json",
    log:
        "results/logs/plot/{figure}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        recipe=lambda wildcards: RECIPES.figure(wildcards.figure).name,
    message:
        "Drawing {wildcards.figure}"
    shell:
        "python3 {workflow.basedir:q}/workflow/scripts/plot.py results/recipes/{params.recipe}.json {log:q}"
