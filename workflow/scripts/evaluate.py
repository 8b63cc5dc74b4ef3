"""Make evaluation tables of one data set: those that the rule names as outputs.

| output | content |
|---|---|
| each | the table of its name (see `advsets.tables`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.write import study_of_run, write_tables

        study = study_of_run(snakemake.wildcards.dataset, snakemake.params.study, **dict(snakemake.input.items()))
        write_tables(study, {name: Path(path) for name, path in snakemake.output.items()})


main()
