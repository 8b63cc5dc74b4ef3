"""Filter one data set with one setting changed, to its stop.

On the CPU, unless the job was granted a GPU (`--set-resources filter_variant:gpu=1`).

| output | content |
|---|---|
| retained | evaluation rows and whether they are kept (table `retained`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.devices import device_for

        with device_for(snakemake.resources.get("gpu", 0)) as device:
            from advsets.aflite.run import filter_files
            from advsets.aflite.settings import FilterSettings

            filter_files(
                Path(snakemake.input.train),
                Path(snakemake.input.evaluation),
                Path(snakemake.output.retained).parent,
                FilterSettings(**snakemake.params.settings),
                seed=snakemake.params.seed,
                threads=snakemake.threads,
                device=device,
                overwrite=True,
            )


main()
