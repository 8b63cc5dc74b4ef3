"""Collect the rounds of one chain.

| output | content |
|---|---|
| retained, retained_train | what was kept, per split (table `retained`) |
| round_scores | scores by round (table `round_scores`) |
| rounds | one line per round (table `rounds`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.aflite.chain import collect

        collect([Path(node).with_suffix("") for node in snakemake.input], Path(snakemake.output.retained).parent)


main()
