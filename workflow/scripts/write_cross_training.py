"""Write the scores by training set as a LaTeX table.

| output | content |
|---|---|
| tex | one `table` per collection, for `booktabs` |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.figures.context import FigureContext
        from advsets.figures.inputs import evaluation_table
        from advsets.figures.latex import latex
        from advsets.io import write_text
        from advsets.registry import DatasetRow, ModelRow

        params = snakemake.params
        titles = FigureContext.from_rows(
            [DatasetRow.from_config(name, row) for name, row in params.dataset_rows.items()],
            [ModelRow.from_config(name, row) for name, row in params.model_rows.items()],
            {},
            collections=params.collections,
        )
        write_text(Path(snakemake.output.tex), latex(evaluation_table("cross_training", snakemake.input), titles))


main()
