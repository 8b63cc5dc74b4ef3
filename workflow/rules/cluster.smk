# Needs: `cluster` of the configuration. Gives: what each step asks a scheduler for, and the groups
# of jobs that profiles/slurm submits together. A local run limits and groups nothing by this.
def once(wildcards):
    return 1


def step_resources(step, on_gpu=False, times=once, size=once):
    """Memory and time of a step, more at each attempt.

    `size` says of the wildcards by how much a job is larger than the configuration has it, `times`
    how many pieces it does one after the other.
    """
    cluster = config["cluster"]

    def memory(wildcards, attempt):
        return cluster["mem_mb"][step] * size(wildcards) * attempt

    def runtime(wildcards, attempt):
        pieces = times(wildcards) * size(wildcards)
        return cluster["runtime_min"][step] * pieces * attempt

    gpu_only = {"nodes": 1, "gpu_model": cluster["gpu_model"]} if on_gpu else {}
    return {
        "mem_mb": memory,
        "runtime": runtime,
        "slurm_partition": (on_gpu and cluster["gpu_partition"])
        or cluster["partition"],
        "slurm_account": cluster["account"],
        **gpu_only,
    }


def rounds_in_node(wildcards):
    """Rounds that one node of a chain may run."""
    return ROUNDS_PER_JOB[wildcards.dataset]


def rounds_of_variant(wildcards):
    """Rounds of a filter that is one job."""
    return FILTERS[wildcards.dataset]["max_rounds"]


def n_members(wildcards):
    """Adversaries whose embeddings one filter reads."""
    return len(members_embeddings(wildcards)["train"])


def figure_group(tables):
    """Group of a figure, so that none waits for a step that its tables do not come from.

    Others than those of the groups are submitted by themselves.
    """
    of_sets = {
        *rules.evaluate_agreement.output.keys(),
        *rules.filter_collect.output.keys(),
    }
    groups = {
        "set_figures": of_sets,
        "model_figures": {*of_sets, *rules.evaluate_models.output.keys()},
        "collected_figures": set(rules.evaluate_collection.output.keys()),
        "questions": set(rules.question_statistics.output.keys()),
    }
    fitting = (group for group, made in groups.items() if made.issuperset(tables))
    return next(fitting, None)
