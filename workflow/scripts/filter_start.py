"""Check the embeddings of one adversary and make the first state of its chain.

| output | content |
|---|---|
| node | round number, counts, stop (JSON) |
| state | every row, retained (table `filter_state`) |
| scores | empty (table `round_scores`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.aflite.chain import start_node

        start_node(
            list(map(Path, snakemake.input.train)),
            list(map(Path, snakemake.input.evaluation)),
            Path(snakemake.output.node).with_suffix(""),
            settings=snakemake.params.settings,
            seed=snakemake.params.seed,
            combination=snakemake.params.combination,
        )


main()
