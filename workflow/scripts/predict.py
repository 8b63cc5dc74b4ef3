"""Predict the evaluation set by one evaluated model.

| output | content |
|---|---|
| predictions | label and probabilities per example (table `predictions`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.devices import device_for

        n_gpus = snakemake.resources.get("gpu", 0)
        with device_for(n_gpus, wanted=snakemake.config["device"]) as device:
            from advsets.io import read_table
            from advsets.models.parallel import devices_of, run_on
            from advsets.models.predict import predict
            from advsets.models.settings import EmbedSettings

            run_on(
                devices_of(device, n_gpus),
                predict,
                Path(snakemake.input.checkpoint),
                read_table(snakemake.input.examples, "examples"),
                Path(snakemake.output.predictions),
                EmbedSettings(
                    dtype="float32",
                    tokens_per_batch=snakemake.config["embed"]["tokens_per_batch"],
                    max_length=snakemake.params.max_length,
                ),
            )


main()
