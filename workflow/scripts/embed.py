"""Embed one split of a data set by one adversary.

| output | content |
|---|---|
| embeddings | one vector per example, or per candidate (table `embeddings` or `candidate_embeddings`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.devices import device_for

        n_gpus = snakemake.resources.get("gpu", 0)
        with device_for(n_gpus, wanted=snakemake.config["device"]) as device:
            from advsets.datasets.roles import rows_to_embed
            from advsets.models.embed import embed
            from advsets.models.parallel import devices_of, run_on
            from advsets.models.settings import EmbedSettings

            run_on(
                devices_of(device, n_gpus),
                embed,
                Path(snakemake.input.checkpoint),
                rows_to_embed(Path(snakemake.input.examples), snakemake.wildcards.split),
                Path(snakemake.output.embeddings),
                EmbedSettings(
                    dtype=snakemake.params.dtype,
                    tokens_per_batch=snakemake.config["embed"]["tokens_per_batch"],
                    max_length=snakemake.params.max_length,
                ),
            )


main()
