"""Draw one figure.

| output | content |
|---|---|
| pdf, png | the figure |
| csv | the rows behind it |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.figures.context import FigureContext
        from advsets.figures.inputs import read_tables
        from advsets.figures.registry import draw, save
        from advsets.registry import DatasetRow, ImportedModel, ModelRow

        params = snakemake.params
        context = FigureContext.from_rows(
            [DatasetRow.from_config(name, row) for name, row in params.dataset_rows.items()],
            [ModelRow.from_config(name, row) for name, row in params.model_rows.items()],
            params.thresholds,
            imported=[ImportedModel.from_config(n, row) for n, row in params.collected["imported"].items()],
            collections=params.collected["collections"],
        )
        paths = {name: [files] if isinstance(files, str) else list(files) for name, files in snakemake.input.items()}
        tables = read_tables(paths, list(params.dataset_rows), params.adversary_runs)
        save(*draw(params.figure, tables, context), Path(snakemake.output.pdf).with_suffix(""))


main()
