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

        with device_for(snakemake.resources.get("gpu", 0), wanted=snakemake.config["device"]) as device:
            from advsets.datasets.roles import training_rows
            from advsets.models.finetune import fine_tune
            from advsets.models.settings import FineTuneSettings
            from advsets.registry import DatasetRow, ModelRow
            from advsets.seeding import seed_for

            role, params, checkpoint = snakemake.wildcards.role, snakemake.params, Path(snakemake.output.checkpoint)
            fine_tune(
                ModelRow.from_config(snakemake.wildcards.model, params.model),
                Path(snakemake.input.weights),
                DatasetRow.from_config(snakemake.wildcards.dataset, params.dataset),
                training_rows(Path(snakemake.input.train), role, params.evaluated_model_train),
                FineTuneSettings(**params.settings),
                seed=seed_for(int(snakemake.wildcards.seed), role),
                out=checkpoint,
                log=Path(snakemake.output.training_log),
                work=checkpoint.with_suffix(".work"),
                device=device,
            )


main()
