# Needs: the tables that a row of config/figures.yaml names. Gives: the figure as PDF, PNG and
# the CSV behind it. A figure asks only for its own tables, so one figure runs only its stages.
# One rule per row, since a caption in the report cannot depend on a wildcard.
for figure, row in FIGURES.items():

    rule:
        name:
            f"draw_{figure}"
        input:
            **figure_tables(row),
        output:
            pdf=f"{RUN}/figures/{figure}.pdf",
            png=report(
                f"{RUN}/figures/{figure}.png",
                caption=f"../report/{row['caption']}",
                category=row["category"],
                labels={"figure": figure},
            ),
            csv=f"{RUN}/figures/{figure}.csv",
        log:
            f"{RUN}/logs/figure/{figure}.log",
        benchmark:
            f"{RUN}/benchmarks/figure/{figure}.tsv"
        group:
            figure_group(row["tables"])
        conda:
            ENV
        resources:
            **step_resources("other"),
            together=1,
        params:
            figure=figure,
            dataset_rows=figure_datasets(row),
            model_rows=figure_models(row),
            collected=figure_collections(row),
            adversary_runs=runs_of(config["adversaries"], "adversary"),
            thresholds={d: FILTERS[d]["threshold"] for d in DATASETS},
            code=code_version(*(f"figures/{name}.py" for name in (figure, *DRAWING))),
        message:
            f"Drawing {figure}"
        script:
            "../scripts/figure.py"
