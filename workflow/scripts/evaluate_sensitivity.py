"""Compare filters with one setting changed with the run's own, on one data set.

| output | content |
|---|---|
| sensitivity | overlap of retained sets, and difficulty, by setting and value (table `sensitivity`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.sensitivity import sensitivity
        from advsets.evaluation.write import study_of_run
        from advsets.io import write_table

        files, params = dict(snakemake.input.items()), snakemake.params
        variants = dict(zip(map(tuple, params.variants), map(Path, files.pop("variants", [])), strict=True))
        study = study_of_run(snakemake.wildcards.dataset, params.study, **files)
        write_table(sensitivity(study, variants), Path(snakemake.output.sensitivity), "sensitivity")


main()
