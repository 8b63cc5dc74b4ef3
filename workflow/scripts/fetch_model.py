"""Fetch the weights of one model.

| output | content |
|---|---|
| record | where the weights lie, and their revision and checksum (JSON) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.models.sources import fetch_model
        from advsets.registry import ModelRow

        row = ModelRow.from_config(snakemake.wildcards.model, snakemake.params.row)
        fetch_model(row, Path(snakemake.output.record).parent)


main()
