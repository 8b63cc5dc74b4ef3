# Needs: examples and the retained mask of an adversary's first seed. Gives: the filtered set as
# a folder that `datasets.load_dataset` reads, with a card.


rule export_set:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        retained=f"{RUN}/aflite/{{dataset}}/{{adversary}}/seed{SEEDS['adversary'][0]}/retained.parquet",
        agreement=f"{RUN}/evaluation/{{dataset}}/agreement.parquet",
        source=f"{DOWNLOADS}/datasets/{{dataset}}/source.json",
        weights=f"{DOWNLOADS}/models/{{adversary}}/model.json",
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
        model_row=lambda wildcards: MODELS[wildcards.adversary],
        settings=lambda wildcards: {
            "seed": config["seed"],
            "adversary_seed": SEEDS["adversary"][0],
            "adversary_fraction": config["split"]["adversary_fraction"],
            "filter": FILTERS[wildcards.dataset],
            "fine_tune": settings.without_memory(
                tuning_of(wildcards.dataset, wildcards.adversary)
            ),
        },
        code=code_version("export"),
    message:
        "Exporting {wildcards.dataset} as filtered by {wildcards.adversary}"
    script:
        "../scripts/export_set.py"
