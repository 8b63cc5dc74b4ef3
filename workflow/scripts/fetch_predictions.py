"""Fetch one file of predictions that others made.

| output | content |
|---|---|
| file | the file as it is at its address |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.datasets.download import download

        address, sha256, file = snakemake.params.address, snakemake.params.sha256, Path(snakemake.output.file)
        download(address, file, sha256, "predictions", f"name a copy on your disk in `files` instead of {address}")


main()
