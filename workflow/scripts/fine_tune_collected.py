"""Fine-tune one model on a training set of a collection.

| output | content |
|---|---|
| checkpoint | weights, tokenizer and `advsets.json` |
| training_log | one row per logged step (table `training_log`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.devices import device_for

        n_gpus = snakemake.resources.get("gpu", 0)
        with device_for(n_gpus, wanted=snakemake.config["device"]) as device:
            from advsets.collected import fine_tune_settings
            from advsets.models.parallel import devices_of, run_on
            from advsets.models.settings import FineTuneSettings
            from advsets.models.task_tuning import fine_tune_on
            from advsets.registry import DatasetRow, ModelRow
            from advsets.seeding import seed_for

            asked, params, checkpoint = snakemake.wildcards, snakemake.params, Path(snakemake.output.checkpoint)
            settings = fine_tune_settings(snakemake.config, asked.collection, asked.training_set, asked.model)
            run_on(
                devices_of(device, n_gpus),
                fine_tune_on,
                ModelRow.from_config(asked.model, params.model),
                Path(snakemake.input.weights),
                DatasetRow.from_config(asked.training_set, params.dataset),
                Path(snakemake.input.train),
                FineTuneSettings(**settings),
                params.windows,
                seed=seed_for(int(asked.seed), "evaluated_model"),
                out=checkpoint,
                log=Path(snakemake.output.training_log),
                work=checkpoint.with_suffix(".work"),
            )


main()
