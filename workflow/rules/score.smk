# Needs: examples, training sets and predictions of a collection. Gives: its tables under
# results/<run>/evaluation/collected and the table of training sets as LaTeX, by joins alone.


rule evaluate_collection:
    input:
        examples=lambda wildcards: examples_of_sets(wildcards.collection),
        more_annotators=lambda wildcards: more_annotators_of(wildcards.collection),
        training=lambda wildcards: training_of(wildcards.collection),
        trained=lambda wildcards: trained_predictions(wildcards.collection),
        imported=lambda wildcards: imported_predictions(wildcards.collection),
    output:
        collected_sets=f"{COLLECTION_TABLES}/collected_sets.parquet",
        collected_scores=f"{COLLECTION_TABLES}/collected_scores.parquet",
        collected_ranks=f"{COLLECTION_TABLES}/collected_ranks.parquet",
        collected_correlation=f"{COLLECTION_TABLES}/collected_correlation.parquet",
        collected_penalty=f"{COLLECTION_TABLES}/collected_penalty.parquet",
        collected_penalty_cells=f"{COLLECTION_TABLES}/collected_penalty_cells.parquet",
        cross_training=f"{COLLECTION_TABLES}/cross_training.parquet",
        model_in_the_loop=f"{COLLECTION_TABLES}/model_in_the_loop.parquet",
    log:
        f"{RUN}/logs/evaluate_collection/{{collection}}.log",
    benchmark:
        f"{RUN}/benchmarks/evaluate_collection/{{collection}}.tsv"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
    params:
        study=collection_params,
        code=code_version(
            "evaluation/collected",
            "evaluation/frames.py",
            "evaluation/inputs.py",
            "evaluation/penalty.py",
            "evaluation/settings.py",
            "evaluation/study.py",
            "stats",
            "answers.py",
            "collected.py",
            "datasets/roles.py",
            "labels.py",
        ),
    message:
        "Scoring the models of {wildcards.collection}"
    script:
        "../scripts/evaluate_collection.py"


rule question_statistics:
    input:
        train=lambda wildcards: questions_of(wildcards.collection, "train"),
        evaluation=lambda wildcards: questions_of(wildcards.collection, "evaluation"),
    output:
        question_statistics=f"{COLLECTION_TABLES}/question_statistics.parquet",
        question_overlap=f"{COLLECTION_TABLES}/question_overlap.parquet",
        question_kinds=f"{COLLECTION_TABLES}/question_kinds.parquet",
    log:
        f"{RUN}/logs/question_statistics/{{collection}}.log",
    benchmark:
        f"{RUN}/benchmarks/question_statistics/{{collection}}.tsv"
    group:
        "questions"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
        together=1,
    params:
        datasets=lambda wildcards: question_sets_of(wildcards.collection),
        code=code_version(
            "evaluation/collected/kinds.py",
            "evaluation/collected/statistics.py",
            "evaluation/collected/words.py",
            "evaluation/frames.py",
        ),
    message:
        "Counting questions, words and overlaps of {wildcards.collection}"
    script:
        "../scripts/question_statistics.py"


rule write_cross_training:
    input:
        expand(f"{COLLECTION_TABLES}/cross_training.parquet", collection=COLLECTIONS),
    output:
        tex=f"{RUN}/evaluation/collected/cross_training.tex",
    log:
        f"{RUN}/logs/write_cross_training.log",
    benchmark:
        f"{RUN}/benchmarks/write_cross_training.tsv"
    group:
        "collected_figures"
    conda:
        ENV
    resources:
        **step_resources("other"),
        together=1,
    params:
        dataset_rows=COLLECTED_DATASETS,
        model_rows=config["collected_rows"]["models"],
        collections=COLLECTIONS,
        code=code_version(
            "figures/collected.py",
            "figures/context.py",
            "figures/inputs.py",
            "figures/latex.py",
        ),
    message:
        "Writing the scores by training set as LaTeX"
    script:
        "../scripts/write_cross_training.py"
