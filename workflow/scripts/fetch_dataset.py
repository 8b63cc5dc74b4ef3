"""Fetch the raw data of one data set.

| output | content |
|---|---|
| record | what was fetched: kind, revision, checksums, file names and sizes (JSON) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.datasets.sources import fetch
        from advsets.registry import DatasetRow

        row = DatasetRow.from_config(snakemake.wildcards.dataset, snakemake.params.row)
        fetch(row, Path(snakemake.output.record).parent)


main()
