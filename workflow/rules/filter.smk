# Needs: the embeddings of one adversary, or of each member of an ensemble. Gives: one chain of
# nodes per data set, adversary (or ensemble) and seed, from state to state (nodes after the stop pass the state on), and its collected tables.

FIRST_SEED = SEEDS["adversary"][0]


rule filter_start:
    input:
        unpack(members_embeddings),
    output:
        node=f"{CHAIN}/nodes/000.json",
        state=f"{CHAIN}/nodes/000.state.parquet",
        scores=f"{CHAIN}/nodes/000.scores.parquet",
    log:
        f"{RUN}/logs/filter_start/{{dataset}}/{{adversary}}/seed{{seed}}.log",
    benchmark:
        f"{RUN}/benchmarks/filter_start/{{dataset}}/{{adversary}}/seed{{seed}}.tsv"
    group:
        "chain"
    conda:
        ENV
    resources:
        **step_resources("filter", size=n_members),
    params:
        settings=lambda wildcards: FILTERS[wildcards.dataset],
        seed=config["seed"],
        combination=combination_of,
        code=code_version("aflite", "seeding.py"),
    message:
        "Checking embeddings of {wildcards.dataset} by {wildcards.adversary}, seed {wildcards.seed}"
    script:
        "../scripts/filter_start.py"


rule filter_rounds:
    input:
        unpack(previous_node),
        unpack(members_embeddings),
    output:
        node=f"{CHAIN}/nodes/{{node}}.json",
        state=f"{CHAIN}/nodes/{{node}}.state.parquet",
        scores=f"{CHAIN}/nodes/{{node}}.scores.parquet",
    log:
        f"{RUN}/logs/filter_rounds/{{dataset}}/{{adversary}}/seed{{seed}}/{{node}}.log",
    benchmark:
        f"{RUN}/benchmarks/filter_rounds/{{dataset}}/{{adversary}}/seed{{seed}}/{{node}}.tsv"
    wildcard_constraints:
        node=r"(?!000)\d{3}",
    group:
        "chain"
    conda:
        ENV
    threads: config["threads"]["filter"]
    resources:
        **step_resources("filter", times=rounds_in_node, size=n_members),
    params:
        rounds_per_job=lambda wildcards: ROUNDS_PER_JOB[wildcards.dataset],
        code=code_version("aflite", "seeding.py"),
    message:
        "Filtering {wildcards.dataset} by {wildcards.adversary}, seed {wildcards.seed}, node {wildcards.node}"
    script:
        "../scripts/filter_rounds.py"


rule filter_collect:
    input:
        chain_nodes,
    output:
        retained=f"{CHAIN}/retained.parquet",
        retained_train=f"{CHAIN}/retained_train.parquet",
        round_scores=f"{CHAIN}/round_scores.parquet",
        rounds=f"{CHAIN}/rounds.parquet",
    log:
        f"{RUN}/logs/filter_collect/{{dataset}}/{{adversary}}/seed{{seed}}.log",
    benchmark:
        f"{RUN}/benchmarks/filter_collect/{{dataset}}/{{adversary}}/seed{{seed}}.tsv"
    group:
        "chain"
    conda:
        ENV
    resources:
        **step_resources("filter", size=n_members),
    params:
        code=code_version(
            "aflite/chain.py",
            "aflite/nodes.py",
            "aflite/rounds.py",
            "aflite/state.py",
            "tables",
            "io.py",
        ),
    message:
        "Collecting the rounds of {wildcards.dataset} by {wildcards.adversary}, seed {wildcards.seed}"
    script:
        "../scripts/filter_collect.py"


rule filter_variant:
    input:
        train=f"{RUN}/embeddings/{{dataset}}/{{adversary}}/seed{FIRST_SEED}/train.parquet",
        evaluation=f"{RUN}/embeddings/{{dataset}}/{{adversary}}/seed{FIRST_SEED}/evaluation.parquet",
    output:
        retained=f"{RUN}/sensitivity/{{dataset}}/{{adversary}}/{{setting}}/{{value}}/retained.parquet",
    log:
        f"{RUN}/logs/filter_variant/{{dataset}}/{{adversary}}/{{setting}}/{{value}}.log",
    benchmark:
        f"{RUN}/benchmarks/filter_variant/{{dataset}}/{{adversary}}/{{setting}}/{{value}}.tsv"
    conda:
        ENV
    threads: config["threads"]["filter"]
    resources:
        **step_resources("filter", times=rounds_of_variant),
    params:
        settings=filter_variant,
        seed=seed_variant,
        code=code_version("aflite", "seeding.py"),
    message:
        "Filtering {wildcards.dataset} by {wildcards.adversary} with {wildcards.setting} {wildcards.value}"
    script:
        "../scripts/filter_variant.py"
