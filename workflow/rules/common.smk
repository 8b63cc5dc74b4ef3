# Configuration, names and paths. Needs: the merged configuration. Gives: RUN, the wildcard
# constraints, the list of final files, and the input functions that several stages share.
import os
import re
from pathlib import Path

from snakemake.exceptions import WorkflowError

from advsets import config as settings
from advsets import variants
from advsets.code import code_version
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError, describe_os_error
from advsets.registry import EXTRACTIVE_QA

try:
    settings.check_config_files(workflow.configfiles)
    config = settings.load_run_config(config)
    FIGURES = settings.load_figures(config)
    RUN = f"results/{config['run']}"
    FILTERS = {d: settings.filter_settings(config, d) for d in config["dataset_rows"]}
    N_NODES = {d: settings.n_nodes(FILTERS[d]) for d in FILTERS}
    ROUNDS_PER_JOB = {d: FILTERS[d].pop("rounds_per_job") for d in FILTERS}
    for checked in FILTERS.values():
        FilterSettings(**checked)
    ENSEMBLES = variants.ensembles(config)
    VARIANTS = variants.filter_variants(config)
    settings.write_run_config(config, Path(RUN))
except UserError as error:
    raise WorkflowError(str(error)) from None
except OSError as error:
    raise WorkflowError(describe_os_error(error)) from None

DOWNLOADS = "results/downloads"
CHAIN = f"{RUN}/aflite/{{dataset}}/{{adversary}}/seed{{seed}}"
DATASETS = config["dataset_rows"]
COLLECTED_DATASETS = config["collected_rows"]["datasets"]
ALL_DATASETS = settings.all_datasets(config)
MODELS = config["model_rows"]
ALL_MODELS = settings.all_models(config)
DATASETS_READ = {n: settings.without_display(row) for n, row in ALL_DATASETS.items()}
MODELS_READ = {n: settings.without_display(row) for n, row in ALL_MODELS.items()}
QUESTION_SETS = [n for n, row in ALL_DATASETS.items() if row["task"] == EXTRACTIVE_QA]
EXAMPLE_SETS = [n for n in ALL_DATASETS if n not in QUESTION_SETS]
SEEDS = config["fine_tuning_seeds"]
ENV = "../../envs/advsets.yaml"
CLASSIFIER = [
    f"models/{name}.py"
    for name in (
        "backbone",
        "batching",
        "checkpoint",
        "classifier",
        "first_token",
        "heads",
        "precision",
        "ranks",
    )
]
DRAWING = ["context", "frames", "inputs", "layout", "registry", "style"]
DRAWING += [f"collected{part}" for part in ("", "_blocks", "_notes", "_points")]
GPU = 0 if config["device"] == "cpu" else 1


def either(names):
    """Regular expression for exactly these names."""
    return "|".join(re.escape(str(name)) for name in sorted(set(names), key=str))


wildcard_constraints:
    dataset=either(ALL_DATASETS),
    model=either(ALL_MODELS),
    adversary=either([*config["adversaries"], *ENSEMBLES]),
    evaluated_model=either(config["evaluated_models"]),
    role="adversary|evaluated_model",
    seed=r"\d+",
    node=r"\d{3}",
    split="train|evaluation",
    extension="pdf|png|csv",
    setting=either(variants.VARIED),
    value=r"[0-9][0-9.]*",


def source_files(wildcards):
    """Local files that a data set is read from, so that an edit of one is noticed."""
    more = ALL_DATASETS[wildcards.dataset]["more_annotators"] or {
        "source": {"kind": None}
    }
    keys = ("train", "evaluation", "train_labels", "evaluation_labels", "file")
    named = [
        source[key]
        for source in (ALL_DATASETS[wildcards.dataset]["source"], more["source"])
        for key in keys
        if source["kind"] == "file" and source.get(key)
    ]
    return [path for path in map(os.path.expandvars, named) if Path(path).is_file()]


def runs_of(models, role):
    """Pairs of model and seed, in the order in which `expand` lists their files."""
    return [(model, seed) for model in models for seed in SEEDS[role]]


def predictions_of(dataset):
    """Prediction tables of every evaluated model and seed."""
    return expand(
        f"{RUN}/predictions/{dataset}/{{evaluated_model}}/seed{{seed}}/evaluation.parquet",
        evaluated_model=config["evaluated_models"],
        seed=SEEDS["evaluated_model"],
    )


def filtered_of(dataset, table="retained"):
    """One AFLite table of every adversary and seed."""
    return expand(
        f"{RUN}/aflite/{dataset}/{{adversary}}/seed{{seed}}/{table}.parquet",
        adversary=config["adversaries"],
        seed=SEEDS["adversary"],
    )


def tuning_of(dataset, model):
    """Fine-tuning settings of a model on a data set."""
    return settings.fine_tune_settings(config, dataset, model)


def gpus_of(model):
    """GPUs of one job of a model."""
    return GPU * ALL_MODELS[model]["gpus"]


def chain_nodes(wildcards):
    """Records of all nodes of one chain; their number is the data set's."""
    numbers = range(N_NODES[wildcards.dataset] + 1)
    return [f"{CHAIN}/nodes/{n:03d}.json".format(**wildcards) for n in numbers]


def previous_node(wildcards):
    """The node before this one, by its parts."""
    stem = f"{CHAIN}/nodes/{int(wildcards.node) - 1:03d}".format(**wildcards)
    return {"previous": f"{stem}.json", "state": f"{stem}.state.parquet"}


def evaluation_params(wildcards):
    """What the evaluation must know besides its tables."""
    return {
        "dataset_row": DATASETS_READ[wildcards.dataset],
        "model_rows": MODELS,
        "model_runs": runs_of(config["evaluated_models"], "evaluated_model"),
        "adversary_runs": runs_of(config["adversaries"], "adversary"),
        "settings": {**config["evaluate"], "seed": config["seed"]},
    }


def agreement_params(wildcards):
    """The same where no model is scored."""
    return {**evaluation_params(wildcards), "model_runs": []}


def ensemble_agreement_params(wildcards):
    """The same of ensembles instead of single adversaries."""
    runs = runs_of(ENSEMBLES, "adversary")
    return {**agreement_params(wildcards), "adversary_runs": runs}


def figure_tables(row):
    """Input files of one figure, by table name."""
    tables = row["tables"]
    if row["study"] != "filtering":
        return {table: collected_tables(table) for table in tables}
    filter_tables = {"rounds", "round_scores", "retained"}
    return {
        table: (
            [path for dataset in DATASETS for path in filtered_of(dataset, table)]
            if table in filter_tables
            else expand(
                f"{RUN}/evaluation/{{dataset}}/{table}.parquet", dataset=DATASETS
            )
        )
        for table in tables
    }


def final_files():
    """Everything that a run makes."""
    figures = expand(
        f"{RUN}/figures/{{figure}}.{{extension}}",
        figure=FIGURES,
        extension=["pdf", "png", "csv"],
    )
    sets = expand(
        f"{RUN}/filtered/{{dataset}}/{{adversary}}",
        dataset=DATASETS,
        adversary=[*config["adversaries"], *ENSEMBLES],
    )
    findings = [f"{RUN}/evaluation/findings.md"] if DATASETS else []
    return [*findings, *figures, *sets, *collected_files()]
