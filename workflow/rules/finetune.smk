# Needs: examples and weights. Gives: one checkpoint and training log per data set, role, model
# and seed. A killed job resumes from `checkpoint.work`, which is no declared output.


rule fine_tune:
    input:
        train=f"{RUN}/data/{{dataset}}/train.parquet",
        weights=f"{DOWNLOADS}/models/{{model}}/model.json",
    output:
        checkpoint=directory(
            f"{RUN}/models/{{dataset}}/{{role}}/{{model}}/seed{{seed}}/checkpoint"
        ),
        training_log=f"{RUN}/models/{{dataset}}/{{role}}/{{model}}/seed{{seed}}/training_log.parquet",
    log:
        f"{RUN}/logs/fine_tune/{{dataset}}/{{role}}/{{model}}/seed{{seed}}.log",
    benchmark:
        f"{RUN}/benchmarks/fine_tune/{{dataset}}/{{role}}/{{model}}/seed{{seed}}.tsv"
    conda:
        ENV
    threads: config["threads"]["fine_tune"]
    resources:
        **step_resources("fine_tune", on_gpu=GPU > 0),
        gpu=lambda wildcards: gpus_of(wildcards.model),
    params:
        dataset=lambda wildcards: DATASETS_READ[wildcards.dataset],
        model=lambda wildcards: MODELS_READ[wildcards.model],
        settings=lambda wildcards: settings.without_memory(
            tuning_of(wildcards.dataset, wildcards.model)
        ),
        evaluated_model_train=config["split"]["evaluated_model_train"],
        code=code_version(
            "datasets/roles.py",
            "models/dropout.py",
            "models/finetune.py",
            "models/passes.py",
            "models/resume.py",
            "models/sampling.py",
            "models/training.py",
            "seeding.py",
            *CLASSIFIER,
        ),
    message:
        "Fine-tuning {wildcards.model} as {wildcards.role} on {wildcards.dataset}, seed {wildcards.seed}"
    script:
        "../scripts/fine_tune.py"


rule clean_checkpoints:
    log:
        f"{RUN}/logs/clean_checkpoints.log",
    conda:
        ENV
    params:
        run=RUN,
        embeddings=[
            f"{RUN}/embeddings/{d}/{a}/seed{s}"
            for d in DATASETS
            for a in config["adversaries"]
            for s in SEEDS["adversary"]
        ],
        predictions=[p for d in DATASETS for p in predictions_of(d)],
        collected={f: p for c in COLLECTIONS for f, p in predicted_by(c).items()},
    message:
        "Removing checkpoints whose embeddings or predictions are made"
    script:
        "../scripts/clean_checkpoints.py"
