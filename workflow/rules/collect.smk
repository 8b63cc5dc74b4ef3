# Needs: data sets, weights, and predictions that others made. Gives: for every collection, training
# sets, models trained on them, and predictions on sets that people wrote against a model in the loop.
COLLECTION = f"{RUN}/collected/{{collection}}"
COLLECTION_TABLES = f"{RUN}/evaluation/collected/{{collection}}"
TRAINED = "{training_set}/{model}/seed{seed}"


wildcard_constraints:
    collection=either(COLLECTIONS),
    training_set=either(t for c in COLLECTIONS.values() for t in c["training_sets"]),
    imported_model=either(IMPORTED_MODELS),


rule prepare_questions:
    input:
        record=f"{DOWNLOADS}/datasets/{{dataset}}/source.json",
    output:
        train=f"{RUN}/questions/{{dataset}}/train.parquet",
        evaluation=f"{RUN}/questions/{{dataset}}/evaluation.parquet",
        mismatches=f"{RUN}/questions/{{dataset}}/mismatches.parquet",
        dropped=f"{RUN}/questions/{{dataset}}/dropped.parquet",
    log:
        f"{RUN}/logs/prepare_questions/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/prepare_questions/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=either(QUESTION_SETS),
    conda:
        ENV
    resources:
        **step_resources("other"),
    params:
        row=lambda wildcards: DATASETS_READ[wildcards.dataset],
        split=settings.part(
            config, "split", without=["evaluated_model_train", "adversary_fraction"]
        ),
        seed=config["seed"],
        code=code_version("datasets", "answers.py", "labels.py"),
    message:
        "Preparing questions of {wildcards.dataset}"
    script:
        "../scripts/prepare_questions.py"


rule join_training_set:
    input:
        unpack(training_tables),
    output:
        train=f"{COLLECTION}/training/{{training_set}}/train.parquet",
        dropped=f"{COLLECTION}/training/{{training_set}}/dropped.parquet",
    log:
        f"{RUN}/logs/join_training_set/{{collection}}/{{training_set}}.log",
    benchmark:
        f"{RUN}/benchmarks/join_training_set/{{collection}}/{{training_set}}.tsv"
    conda:
        ENV
    resources:
        **step_resources("other"),
    params:
        names=training_names,
        max_train=lambda wildcards: training_part(wildcards)["max_train"],
        seed=config["seed"],
        code=code_version(
            "collected.py",
            "datasets/duplicates.py",
            "datasets/roles.py",
            "datasets/splitting.py",
            "datasets/training_sets.py",
        ),
    message:
        "Putting training set {wildcards.training_set} of {wildcards.collection} together"
    script:
        "../scripts/join_training_set.py"


rule fine_tune_collected:
    input:
        train=rules.join_training_set.output.train,
        weights=f"{DOWNLOADS}/models/{{model}}/model.json",
    output:
        checkpoint=directory(f"{COLLECTION}/models/{TRAINED}/checkpoint"),
        training_log=f"{COLLECTION}/models/{TRAINED}/training_log.parquet",
    log:
        f"{RUN}/logs/fine_tune_collected/{{collection}}/{TRAINED}.log",
    benchmark:
        f"{RUN}/benchmarks/fine_tune_collected/{{collection}}/{TRAINED}.tsv"
    conda:
        ENV
    threads: config["threads"]["fine_tune"]
    resources:
        **step_resources("fine_tune", on_gpu=GPU > 0),
        gpu=lambda wildcards: gpus_of(wildcards.model),
    params:
        dataset=lambda wildcards: DATASETS_READ[training_part(wildcards)["datasets"][0]],
        model=lambda wildcards: MODELS_READ[wildcards.model],
        settings=lambda wildcards: settings.without_memory(tuning_collected(wildcards)),
        windows=windows_of,
        code=code_version(
            "models/dropout.py",
            "models/finetune.py",
            "models/passes.py",
            "models/qa/finetune.py",
            "models/qa/reader.py",
            "models/qa/spans.py",
            "models/qa/windows.py",
            "models/resume.py",
            "models/sampling.py",
            "models/task_tuning.py",
            "models/training.py",
            "answers.py",
            *CLASSIFIER,
        ),
    message:
        "Fine-tuning {wildcards.model} on {wildcards.training_set} of {wildcards.collection}, seed {wildcards.seed}"
    script:
        "../scripts/fine_tune_collected.py"


rule predict_collected:
    input:
        checkpoint=rules.fine_tune_collected.output.checkpoint,
        examples=lambda wildcards: examples_of(wildcards.dataset),
    output:
        predictions=f"{COLLECTION}/predictions/{TRAINED}/{{dataset}}.parquet",
    log:
        f"{RUN}/logs/predict_collected/{{collection}}/{TRAINED}/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/predict_collected/{{collection}}/{TRAINED}/{{dataset}}.tsv"
    conda:
        ENV
    threads: config["threads"]["embed"]
    resources:
        **step_resources("embed", on_gpu=GPU > 0),
        gpu=lambda wildcards: gpus_of(wildcards.model),
    params:
        max_length=lambda wildcards: tuning_collected(wildcards)["max_length"],
        windows=windows_of,
        code=code_version(
            "datasets/roles.py",
            "models/inference.py",
            "models/predict.py",
            "models/qa/predict.py",
            "models/qa/reader.py",
            "models/qa/spans.py",
            "models/qa/windows.py",
            "models/task_prediction.py",
            *CLASSIFIER,
        ),
    message:
        "Predicting {wildcards.dataset} by {wildcards.model} of {wildcards.training_set}, seed {wildcards.seed}"
    script:
        "../scripts/predict_collected.py"


rule fetch_predictions:
    output:
        file=f"{DOWNLOADS}/predictions/{{file}}",
    log:
        f"{DOWNLOADS}/logs/fetch_predictions/{{file}}.log",
    benchmark:
        f"{DOWNLOADS}/benchmarks/fetch_predictions/{{file}}.tsv"
    wildcard_constraints:
        file=r"[0-9a-f]{12}/[^/]+",
    conda:
        ENV
    params:
        address=lambda wildcards: FETCHED[f"{DOWNLOADS}/predictions/{wildcards.file}"],
        sha256=fetched_sha256,
    message:
        "Fetching predictions {wildcards.file}"
    script:
        "../scripts/fetch_predictions.py"


rule import_predictions:
    input:
        file=imported_file,
        examples=lambda wildcards: examples_of(wildcards.dataset),
    output:
        predictions=f"{COLLECTION}/predictions/imported/{{imported_model}}/{{dataset}}.parquet",
    log:
        f"{RUN}/logs/import_predictions/{{collection}}/{{imported_model}}/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/import_predictions/{{collection}}/{{imported_model}}/{{dataset}}.tsv"
    group:
        "imports_{collection}"
    conda:
        ENV
    resources:
        **step_resources("other"),
        together=1,
    params:
        row=lambda wildcards: IMPORTED_MODELS[wildcards.imported_model],
        label_order=lambda wildcards: DATASETS_READ[wildcards.dataset]["label_order"],
        labels=lambda wildcards: DATASETS_READ[wildcards.dataset]["labels"],
        code=code_version(
            "datasets/annotators.py",
            "datasets/columns.py",
            "datasets/duplicates.py",
            "datasets/questions/records.py",
            "datasets/raw.py",
            "datasets/roles.py",
            "datasets/tabular.py",
            "evaluation/collected/imported.py",
            "evaluation/collected/imported_file.py",
            "evaluation/collected/probabilities.py",
            "labels.py",
        ),
    message:
        "Reading predictions of {wildcards.imported_model} on {wildcards.dataset}"
    script:
        "../scripts/import_predictions.py"
