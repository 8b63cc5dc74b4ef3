# Needs: the tables that a row of config/figures.yaml names. Gives: the figure as PDF, PNG and
# the CSV behind it. A figure asks only for its own tables, so one figure runs only its stages.


rule figure:
    input:
        unpack(figure_tables),
    output:
        pdf=f"{RUN}/figures/{{figure}}.pdf",
        png=report(
            f"{RUN}/figures/{{figure}}.png",
            caption="../report/{figure}.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        csv=f"{RUN}/figures/{{figure}}.csv",
    log:
        f"{RUN}/logs/figure/{{figure}}.log",
    benchmark:
        f"{RUN}/benchmarks/figure/{{figure}}.tsv"
    conda:
        ENV
    params:
        dataset_rows=DATASETS,
        model_rows=MODELS,
        adversary_runs=runs_of(config["adversaries"], "adversary"),
        threshold=config["filter"]["threshold"],
        code=lambda wildcards: code_version(
            f"figures/{wildcards.figure}.py",
            "figures/style.py",
            "figures/layout.py",
            "figures/frames.py",
        ),
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/figure.py"
