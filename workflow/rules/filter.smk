# Needs: the embeddings of one adversary. Gives: one chain of nodes per data set, adversary and
# seed, from state to state (nodes after the stop pass the state on), and its collected tables.
EMBEDDINGS = f"{RUN}/embeddings/{{dataset}}/{{adversary}}/seed{{seed}}"
FILTER = settings.part(config, "filter", without=["rounds_per_job"])


rule filter_start:
    input:
        train=f"{EMBEDDINGS}/train.parquet",
        evaluation=f"{EMBEDDINGS}/evaluation.parquet",
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
        **step_resources("filter"),
    params:
        settings=FILTER,
        seed=config["seed"],
        code=code_version("aflite", "seeding.py"),
    message:
        "Checking embeddings of {wildcards.dataset} by {wildcards.adversary}, seed {wildcards.seed}"
    script:
        "../scripts/filter_start.py"


rule filter_rounds:
    input:
        unpack(previous_node),
        train=f"{EMBEDDINGS}/train.parquet",
        evaluation=f"{EMBEDDINGS}/evaluation.parquet",
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
        **step_resources("filter", times=rounds_in_node),
    params:
        rounds_per_job=config["filter"]["rounds_per_job"],
        code=code_version("aflite", "seeding.py"),
    message:
        "Filtering {wildcards.dataset} by {wildcards.adversary}, seed {wildcards.seed}, node {wildcards.node}"
    script:
        "../scripts/filter_rounds.py"


rule filter_collect:
    input:
        expand(
            f"{CHAIN}/nodes/{{node}}.json",
            node=[f"{n:03d}" for n in range(N_NODES + 1)],
            allow_missing=True,
        ),
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
        **step_resources("filter"),
    params:
        code=code_version(
            "aflite/chain.py",
            "aflite/nodes.py",
            "aflite/rounds.py",
            "aflite/state.py",
            "tables.py",
            "io.py",
        ),
    message:
        "Collecting the rounds of {wildcards.dataset} by {wildcards.adversary}, seed {wildcards.seed}"
    script:
        "../scripts/filter_collect.py"
