"""Count questions, words, overlaps and kinds of questions of one collection.

| output | content |
|---|---|
| each | the table of its name (see `advsets.tables`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.collected.statistics import write_statistics

        write_statistics(
            snakemake.wildcards.collection,
            list(snakemake.params.datasets),
            [Path(path) for path in snakemake.input.train],
            [Path(path) for path in snakemake.input.evaluation],
            {name: Path(path) for name, path in snakemake.output.items()},
        )


main()
