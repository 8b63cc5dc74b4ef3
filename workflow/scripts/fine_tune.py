"""Fine-tune one model in one role.

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
            from advsets.config import fine_tune_settings
            from advsets.datasets.roles import training_rows
            from advsets.models.finetune import fine_tune
            from advsets.models.parallel import devices_of, run_on
            from advsets.models.settings import FineTuneSettings
            from advsets.registry import DatasetRow, ModelRow
            from advsets.seeding import seed_for

            asked, params, checkpoint = snakemake.wildcards, snakemake.params, Path(snakemake.output.checkpoint)
            run_on(
                devices_of(device, n_gpus),
                fine_tune,
                ModelRow.from_config(asked.model, params.model),
                Path(snakemake.input.weights),
                DatasetRow.from_config(asked.dataset, params.dataset),
                training_rows(Path(snakemake.input.train), asked.role, params.evaluated_model_train),
                FineTuneSettings(**fine_tune_settings(snakemake.config, asked.dataset, asked.model)),
                seed=seed_for(int(asked.seed), asked.role),
                out=checkpoint,
                log=Path(snakemake.output.training_log),
                work=checkpoint.with_suffix(".work"),
            )


main()
