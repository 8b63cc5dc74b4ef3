"""Make the examples tables of one data set.

| output | content |
|---|---|
| train, evaluation | one row per example (table `examples`) |
| more_annotators | counts of labels that others gave to evaluation rows (table `more_annotators`) |
| dropped | rows dropped or counted, by reason (table `dropped`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.datasets.prepare import prepare
        from advsets.registry import DatasetRow

        prepare(
            DatasetRow.from_config(snakemake.wildcards.dataset, snakemake.params.row),
            Path(snakemake.input.record).parent,
            Path(snakemake.output.train).parent,
            seed=snakemake.params.seed,
            **snakemake.params.split,
        )


main()
