# Configuration, names and paths. Needs: the merged configuration. Gives: RUN, the wildcard
# constraints, the list of final files, and the input functions that several stages share.
import os
import re
from pathlib import Path

from snakemake.exceptions import WorkflowError

from advsets import config as settings
from advsets.code import code_version
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError, describe_os_error

try:
    settings.check_config_files(workflow.configfiles)
    config = settings.load_run_config(config)
    FIGURES = settings.load_figures(config)
    RUN = f"results/{config['run']}"
    FilterSettings(**settings.part(config, "filter", without=["rounds_per_job"]))
    settings.write_run_config(config, Path(RUN))
except UserError as error:
    raise WorkflowError(str(error)) from None
except OSError as error:
    raise WorkflowError(describe_os_error(error)) from None

DOWNLOADS = "results/downloads"
CHAIN = f"{RUN}/aflite/{{dataset}}/{{adversary}}/seed{{seed}}"
DATASETS = config["dataset_rows"]
MODELS = config["model_rows"]
DATASETS_READ = {name: settings.without_display(row) for name, row in DATASETS.items()}
MODELS_READ = {name: settings.without_display(row) for name, row in MODELS.items()}
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
GPU = 0 if config["device"] == "cpu" else 1
N_NODES = -(-config["filter"]["max_rounds"] // config["filter"]["rounds_per_job"])


def either(names):
    """Regular expression for exactly these names."""
    return "|".join(re.escape(str(name)) for name in sorted(set(names), key=str))


wildcard_constraints:
    dataset=either(DATASETS),
    model=either(MODELS),
    adversary=either(config["adversaries"]),
    evaluated_model=either(config["evaluated_models"]),
    role="adversary|evaluated_model",
    seed=r"\d+",
    node=r"\d{3}",
    split="train|evaluation",
    extension="pdf|png|csv",


def source_files(wildcards):
    """Local files that a data set is read from, so that an edit of one is noticed."""
    source = DATASETS[wildcards.dataset]["source"]
    keys = ("train", "evaluation", "train_labels", "evaluation_labels")
    named = [source[key] for key in keys if source["kind"] == "file" and source[key]]
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


def previous_node(wildcards):
    """The node before this one, by its parts."""
    stem = f"{CHAIN}/nodes/{int(wildcards.node) - 1:03d}".format(**wildcards)
    return {"previous": f"{stem}.json", "state": f"{stem}.state.parquet"}


def evaluation_params(wildcards):
    """What the evaluation must know besides its tables."""
    return {
        "dataset_row": DATASETS[wildcards.dataset],
        "model_rows": MODELS,
        "model_runs": runs_of(config["evaluated_models"], "evaluated_model"),
        "adversary_runs": runs_of(config["adversaries"], "adversary"),
        "settings": {**config["evaluate"], "seed": config["seed"]},
    }


def agreement_params(wildcards):
    """The same where no model is scored."""
    return {**evaluation_params(wildcards), "model_runs": []}


def figure_tables(tables):
    """Input files of one figure, by table name."""
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
        adversary=config["adversaries"],
    )
    return [f"{RUN}/evaluation/findings.md", *figures, *sets]
