"""Run the next filtering rounds of one chain, or pass its state on after the stop.

| output | content |
|---|---|
| node | round number, one line per round, stop (JSON) |
| state | every row after these rounds (table `filter_state`) |
| scores | scores of these rounds (table `round_scores`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.aflite.chain import run_node

        run_node(
            Path(snakemake.input.previous).with_suffix(""),
            list(map(Path, snakemake.input.train)),
            list(map(Path, snakemake.input.evaluation)),
            Path(snakemake.output.node).with_suffix(""),
            n_rounds=snakemake.params.rounds_per_job,
            threads=snakemake.threads,
            device=snakemake.config["device"],
            code=snakemake.params.code,
        )


main()
