# Needs: the data sets and models tables. Gives: raw data and weights under results/downloads,
# each with a record of what was fetched, and the examples tables of every data set.


rule fetch_dataset:
    input:
        source_files,
    output:
        record=f"{DOWNLOADS}/datasets/{{dataset}}/source.json",
    log:
        f"{DOWNLOADS}/logs/fetch_dataset/{{dataset}}.log",
    benchmark:
        f"{DOWNLOADS}/benchmarks/fetch_dataset/{{dataset}}.tsv"
    conda:
        ENV
    params:
        row=lambda wildcards: DATASETS_READ[wildcards.dataset],
        code=code_version("datasets/sources.py"),
    message:
        "Fetching data set {wildcards.dataset}"
    script:
        "../scripts/fetch_dataset.py"


rule fetch_model:
    output:
        record=f"{DOWNLOADS}/models/{{model}}/model.json",
    log:
        f"{DOWNLOADS}/logs/fetch_model/{{model}}.log",
    benchmark:
        f"{DOWNLOADS}/benchmarks/fetch_model/{{model}}.tsv"
    conda:
        ENV
    params:
        row=lambda wildcards: MODELS_READ[wildcards.model],
        code=code_version("models/sources.py"),
    message:
        "Fetching model {wildcards.model}"
    script:
        "../scripts/fetch_model.py"


rule fetch:
    input:
        expand(f"{DOWNLOADS}/datasets/{{dataset}}/source.json", dataset=ALL_DATASETS),
        expand(f"{DOWNLOADS}/models/{{model}}/model.json", model=ALL_MODELS),
        FETCHED.keys(),
    message:
        "Everything that run {config[run]} needs from the network is here."


rule prepare_dataset:
    input:
        record=f"{DOWNLOADS}/datasets/{{dataset}}/source.json",
    output:
        train=f"{RUN}/data/{{dataset}}/train.parquet",
        evaluation=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        more_annotators=f"{RUN}/data/{{dataset}}/more_annotators.parquet",
        dropped=f"{RUN}/data/{{dataset}}/dropped.parquet",
    log:
        f"{RUN}/logs/prepare_dataset/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/prepare_dataset/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=either(EXAMPLE_SETS),
    conda:
        ENV
    resources:
        **step_resources("other"),
    params:
        row=lambda wildcards: DATASETS_READ[wildcards.dataset],
        split=settings.part(config, "split", without=["evaluated_model_train"]),
        seed=config["seed"],
        code=code_version("datasets", "labels.py", "seeding.py"),
    message:
        "Preparing data set {wildcards.dataset}"
    script:
        "../scripts/prepare_dataset.py"
