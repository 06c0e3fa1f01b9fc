rule plot:
    input:
        table="results/tables/{figure}.csv",
        # Where the table comes from is passed on.
        provenance="results/tables/{figure}.provenance.json",
    output:
        pdf="results/figures/{figure}.pdf",
        png=report("results/figures/{figure}.png", caption="../workflow/report/figure.rst", category="Figures"),
        caption="results/figures/{figure}.rst",
        provenance="results/figures/{figure}.provenance.json",
    log:
        "results/logs/plot/{figure}.log",
    localrule: True
    conda:
        "../envs/environment.yaml"
    params:
        figure=lambda wildcards: {key: FIGURES[wildcards.figure][key] for key in ("module", "options")},
        code=lambda wildcards: code_of("plot", f"figures.{FIGURES[wildcards.figure]['module']}"),
    message:
        "Drawing {wildcards.figure}"
    script:
        "../workflow/scripts/plot.py"
