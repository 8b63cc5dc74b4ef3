"""Read predictions that others made on one evaluation set.

| output | content |
|---|---|
| predictions | table `predictions` or `answer_predictions` |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.collected.imported import import_to_table
        from advsets.registry import ImportedModel

        import_to_table(
            ImportedModel.from_config(snakemake.wildcards.imported_model, snakemake.params.row),
            Path(snakemake.input.file),
            Path(snakemake.input.examples),
            snakemake.params.label_order,
            Path(snakemake.output.predictions),
            labels=snakemake.params.labels,
        )


main()
