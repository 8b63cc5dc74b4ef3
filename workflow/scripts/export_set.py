"""Export one filtered set with its card.

| output | content |
|---|---|
| folder | the filtered evaluation set in the hub's format, masks, labels and README.md |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.export.folder import export_set
        from advsets.io import read_json
        from advsets.registry import DatasetRow, ModelRow

        files, params = snakemake.input, snakemake.params
        export_set(
            DatasetRow.from_config(snakemake.wildcards.dataset, params.dataset_row),
            ModelRow.from_config(snakemake.wildcards.adversary, params.model_row),
            Path(files.examples),
            Path(files.retained),
            Path(files.agreement),
            params.settings,
            {"dataset": read_json(files.source), "model": read_json(files.weights)},
            Path(snakemake.output.folder),
        )


main()
