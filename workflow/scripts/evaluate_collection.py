"""Make the evaluation tables of one collection.

| output | content |
|---|---|
| each | the table of its name (see `advsets.tables`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.collected.write import write_collection

        given = snakemake.input
        write_collection(
            snakemake.wildcards.collection,
            snakemake.params.study,
            {name: Path(path) for name, path in snakemake.output.items()},
            **{
                name: [Path(path) for path in given.get(name, [])]
                for name in ("examples", "more_annotators", "training", "trained", "imported")
            },
        )


main()
