"""Export one filtered set with its card.

| output | content |
|---|---|
| folder | the filtered evaluation set in the hub's format, masks, labels and README.md |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.export.adversary import Adversary, Member
        from advsets.export.folder import export_set
        from advsets.io import read_json
        from advsets.registry import DatasetRow, ModelRow

        files, params = snakemake.input, snakemake.params
        members = [
            Member(ModelRow.from_config(name, row), params.fine_tune[name], read_json(record))
            for (name, row), record in zip(params.model_rows.items(), files.weights, strict=True)
        ]
        export_set(
            DatasetRow.from_config(snakemake.wildcards.dataset, params.dataset_row),
            Adversary(snakemake.wildcards.adversary, tuple(members), params.combination),
            Path(files.examples),
            Path(files.retained),
            Path(files.agreement),
            params.settings,
            read_json(files.source),
            Path(snakemake.output.folder),
        )


main()
