"""Run the next filtering rounds of one chain, or pass its state on after the stop.

On the CPU, unless the job was granted a GPU (`--set-resources filter_rounds:gpu=1`).

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
        from advsets.devices import device_for

        with device_for(snakemake.resources.get("gpu", 0)) as device:
            from advsets.aflite.chain import run_node

            run_node(
                Path(snakemake.input.previous).with_suffix(""),
                list(map(Path, snakemake.input.train)),
                list(map(Path, snakemake.input.evaluation)),
                Path(snakemake.output.node).with_suffix(""),
                n_rounds=snakemake.params.rounds_per_job,
                threads=snakemake.threads,
                device=device,
                code=snakemake.params.code,
            )


main()
