# Needs: checkpoints and examples. Gives: the adversaries' representations of the training rows
# kept for filtering and of the evaluation rows, and the evaluated models' predictions.


rule embed:
    input:
        checkpoint=f"{RUN}/models/{{dataset}}/adversary/{{adversary}}/seed{{seed}}/checkpoint",
        examples=f"{RUN}/data/{{dataset}}/{{split}}.parquet",
    output:
        embeddings=f"{RUN}/embeddings/{{dataset}}/{{adversary}}/seed{{seed}}/{{split}}.parquet",
    log:
        f"{RUN}/logs/embed/{{dataset}}/{{adversary}}/seed{{seed}}/{{split}}.log",
    benchmark:
        f"{RUN}/benchmarks/embed/{{dataset}}/{{adversary}}/seed{{seed}}/{{split}}.tsv"
    conda:
        ENV
    threads: config["threads"]["embed"]
    resources:
        **step_resources("embed", on_gpu=GPU > 0),
        gpu=lambda wildcards: gpus_of(wildcards.adversary),
    params:
        dtype=config["embed"]["dtype"],
        max_length=lambda wildcards: tuning_of(wildcards.dataset, wildcards.adversary)[
            "max_length"
        ],
        code=code_version(
            "datasets/roles.py", "models/embed.py", "models/inference.py", *CLASSIFIER
        ),
    message:
        "Embedding {wildcards.split} of {wildcards.dataset} by {wildcards.adversary}, seed {wildcards.seed}"
    script:
        "../scripts/embed.py"


rule predict:
    input:
        checkpoint=f"{RUN}/models/{{dataset}}/evaluated_model/{{evaluated_model}}/seed{{seed}}/checkpoint",
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
    output:
        predictions=f"{RUN}/predictions/{{dataset}}/{{evaluated_model}}/seed{{seed}}/evaluation.parquet",
    log:
        f"{RUN}/logs/predict/{{dataset}}/{{evaluated_model}}/seed{{seed}}.log",
    benchmark:
        f"{RUN}/benchmarks/predict/{{dataset}}/{{evaluated_model}}/seed{{seed}}.tsv"
    conda:
        ENV
    threads: config["threads"]["embed"]
    resources:
        **step_resources("embed", on_gpu=GPU > 0),
        gpu=lambda wildcards: gpus_of(wildcards.evaluated_model),
    params:
        max_length=lambda wildcards: tuning_of(
            wildcards.dataset, wildcards.evaluated_model
        )["max_length"],
        code=code_version("models/predict.py", "models/inference.py", *CLASSIFIER),
    message:
        "Predicting {wildcards.dataset} by {wildcards.evaluated_model}, seed {wildcards.seed}"
    script:
        "../scripts/predict.py"
