"""Predict one evaluation set by a model of a collection.

| output | content |
|---|---|
| predictions | table `predictions` or `answer_predictions` |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.devices import device_for

        n_gpus = snakemake.resources.get("gpu", 0)
        with device_for(n_gpus, wanted=snakemake.config["device"]) as device:
            from advsets.models.parallel import devices_of, run_on
            from advsets.models.settings import EmbedSettings
            from advsets.models.task_prediction import predict_by

            run_on(
                devices_of(device, n_gpus),
                predict_by,
                Path(snakemake.input.checkpoint),
                Path(snakemake.input.examples),
                Path(snakemake.output.predictions),
                EmbedSettings(
                    dtype="float32",
                    tokens_per_batch=snakemake.config["embed"]["tokens_per_batch"],
                    max_length=snakemake.params.max_length,
                ),
                snakemake.params.windows,
            )


main()
