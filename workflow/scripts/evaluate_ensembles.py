"""Compare ensembles of adversaries with single ones on one data set.

| output | content |
|---|---|
| ensembles | difficulty and own excess of each filter at equal size (table `ensembles`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.ensembles import ensembles
        from advsets.evaluation.write import study_of_run
        from advsets.io import write_table

        files, params = dict(snakemake.input.items()), snakemake.params
        retained = dict(zip(map(tuple, params.ensemble_runs), map(Path, files.pop("ensembles", [])), strict=True))
        study = study_of_run(snakemake.wildcards.dataset, params.study, **files)
        write_table(ensembles(study, retained, params.described), Path(snakemake.output.ensembles), "ensembles")


main()
