"""Put the training rows of several data sets together.

| output | content |
|---|---|
| train | table `examples` or `questions` |
| dropped | what was left out, by reason (table `dropped`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.datasets.training_sets import write_training_set

        given, names = snakemake.input, snakemake.params.names
        write_training_set(
            dict(zip(names["train"], map(Path, given.train), strict=True)),
            dict(zip(names["evaluation"], map(Path, given.evaluation), strict=True)),
            [Path(path) for path in given.get("passages_of", [])],
            Path(snakemake.output.train),
            Path(snakemake.output.dropped),
            max_train=snakemake.params.max_train,
            seed=snakemake.params.seed,
            where=f"collections: {snakemake.wildcards.collection}.training_sets: {snakemake.wildcards.training_set}",
        )


main()
