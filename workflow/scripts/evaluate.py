"""Make evaluation tables of one data set: those that the rule names as outputs.

| output | content |
|---|---|
| each | the table of its name (see `advsets.tables`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.write import study_of, write_tables
        from advsets.registry import DatasetRow, ModelRow

        params, files = snakemake.params.study, snakemake.input
        study = study_of(
            DatasetRow.from_config(snakemake.wildcards.dataset, params["dataset_row"]),
            [ModelRow.from_config(name, row) for name, row in params["model_rows"].items()],
            Path(files.examples),
            dict(zip(map(tuple, params["model_runs"]), map(Path, files.get("predictions", [])), strict=True)),
            dict(zip(map(tuple, params["adversary_runs"]), map(Path, files.retained), strict=True)),
            params["settings"],
        )
        write_tables(study, {name: Path(path) for name, path in snakemake.output.items()})


main()
