# Needs: the adversaries and ensembles of the configuration. Gives: the files and settings of filters by several
# adversaries, and of filters with one setting changed.


def members_of(wildcards):
    """Members of an ensemble, or the one adversary."""
    return ENSEMBLES.get(wildcards.adversary, {"members": [wildcards.adversary]})[
        "members"
    ]


def members_embeddings(wildcards):
    """Embeddings of an adversary, or of each member of an ensemble, by split."""
    return {
        split: expand(
            f"{RUN}/embeddings/{{dataset}}/{{member}}/seed{{seed}}/{split}.parquet",
            dataset=wildcards.dataset,
            member=members_of(wildcards),
            seed=wildcards.seed,
        )
        for split in ("train", "evaluation")
    }


def combination_of(wildcards):
    """How an ensemble's scores become one; `mean` of one adversary is its own."""
    return ENSEMBLES.get(wildcards.adversary, {}).get("combination", "mean")


def ensembles_of(dataset):
    """Retained masks of every ensemble and seed."""
    return expand(
        f"{RUN}/aflite/{dataset}/{{adversary}}/seed{{seed}}/retained.parquet",
        adversary=ENSEMBLES,
        seed=SEEDS["adversary"],
    )


def variants_of(dataset):
    """Retained masks of every filter with one setting changed."""
    return [
        f"{RUN}/sensitivity/{dataset}/{adversary}/{setting}/{value}/retained.parquet"
        for adversary, setting, value in VARIANTS
    ]


def filter_variant(wildcards):
    """Filter settings of a data set with one of them changed."""
    changed = VARIANTS[wildcards.adversary, wildcards.setting, wildcards.value]
    own = {} if wildcards.setting == "seed" else {wildcards.setting: changed}
    return {**FILTERS[wildcards.dataset], **own}


def seed_variant(wildcards):
    """Seed of the filter's draws, the run's unless it is what changes."""
    return int(wildcards.value) if wildcards.setting == "seed" else config["seed"]


def agreement_of(wildcards):
    """Table of annotator agreement that has rows of this adversary, or of this ensemble."""
    folder = "ensembles/" if wildcards.adversary in ENSEMBLES else ""
    return f"{RUN}/evaluation/{{dataset}}/{folder}agreement.parquet"


def weights_of(wildcards):
    """Records of where the weights of an adversary, or of each member of an ensemble, came from."""
    return [f"{DOWNLOADS}/models/{m}/model.json" for m in members_of(wildcards)]


def members_tuning(wildcards):
    """Fine-tuning settings by member, but for those that change nothing."""
    return {
        member: settings.without_memory(tuning_of(wildcards.dataset, member))
        for member in members_of(wildcards)
    }
