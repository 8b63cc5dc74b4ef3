# Needs: examples and the retained mask of the first seed of an adversary, or of an ensemble of
# adversaries. Gives: the filtered set as a folder that `datasets.load_dataset` reads, with a card.


rule export_set:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        retained=f"{RUN}/aflite/{{dataset}}/{{adversary}}/seed{FIRST_SEED}/retained.parquet",
        agreement=agreement_of,
        source=f"{DOWNLOADS}/datasets/{{dataset}}/source.json",
        weights=weights_of,
    output:
        folder=directory(f"{RUN}/filtered/{{dataset}}/{{adversary}}"),
    log:
        f"{RUN}/logs/export_set/{{dataset}}/{{adversary}}.log",
    benchmark:
        f"{RUN}/benchmarks/export_set/{{dataset}}/{{adversary}}.tsv"
    group:
        "sets"
    conda:
        ENV
    resources:
        **step_resources("other"),
        together=1,
    params:
        dataset_row=lambda wildcards: DATASETS[wildcards.dataset],
        model_rows=lambda wildcards: {m: MODELS[m] for m in members_of(wildcards)},
        combination=combination_of,
        fine_tune=members_tuning,
        settings=lambda wildcards: {
            "seed": config["seed"],
            "adversary_seed": FIRST_SEED,
            "adversary_fraction": config["split"]["adversary_fraction"],
            "filter": FILTERS[wildcards.dataset],
        },
        code=code_version("export"),
    message:
        "Exporting {wildcards.dataset} as filtered by {wildcards.adversary}"
    script:
        "../scripts/export_set.py"
