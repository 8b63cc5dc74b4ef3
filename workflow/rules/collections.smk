# Needs: the collections of the configuration. Gives: the files of each of their steps, by name.
from hashlib import blake2b
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from advsets import collected
from advsets.imported_rows import ADDRESSES, local_file

COLLECTIONS = config["collections"]
IMPORTED_MODELS = config["collected_rows"]["imported"]


def examples_of(dataset, split="evaluation"):
    """Prepared table of a data set."""
    folder = "questions" if dataset in QUESTION_SETS else "data"
    return f"{RUN}/{folder}/{dataset}/{split}.parquet"


def examples_of_sets(collection):
    """Evaluation tables of a collection, standard sets first."""
    return [examples_of(d) for d in collected.evaluation_sets(COLLECTIONS[collection])]


def more_annotators_of(collection):
    """Tables of verifiers' labels of its evaluation sets; questions have none."""
    sets = collected.evaluation_sets(COLLECTIONS[collection])
    return [
        f"{RUN}/data/{d}/more_annotators.parquet" for d in sets if d in EXAMPLE_SETS
    ]


def training_part(wildcards):
    """What one training set is made of."""
    return COLLECTIONS[wildcards.collection]["training_sets"][wildcards.training_set]


def training_tables(wildcards):
    """Tables that a training set is put together from, and those whose texts it must not hold."""
    part = training_part(wildcards)
    return {
        "train": [examples_of(d, "train") for d in part["datasets"]],
        "passages_of": [examples_of(d, "train") for d in part["passages_of"]],
        "evaluation": examples_of_sets(wildcards.collection),
    }


def training_names(wildcards):
    """Names of the data sets of `training_tables`, in their order."""
    return {
        "train": training_part(wildcards)["datasets"],
        "evaluation": collected.evaluation_sets(COLLECTIONS[wildcards.collection]),
    }


def training_of(collection):
    """Training sets of a collection."""
    return expand(
        f"{RUN}/collected/{collection}/training/{{training_set}}/train.parquet",
        training_set=COLLECTIONS[collection]["training_sets"],
    )


def tuning_collected(wildcards):
    """Fine-tuning settings of a model on a training set."""
    return collected.fine_tune_settings(
        config, wildcards.collection, wildcards.training_set, wildcards.model
    )


def windows_of(wildcards):
    """How passages are cut into windows; nothing where there are none."""
    task = collected.task_of(COLLECTIONS[wildcards.collection], COLLECTED_DATASETS)
    return config["question_answering"] if task == EXTRACTIVE_QA else None


def trained_runs(collection):
    """Training set, model, seed and data set of every prediction that the run makes."""
    part = COLLECTIONS[collection]
    return [
        (training_set, model, seed, dataset)
        for training_set in part["training_sets"]
        for model in part["evaluated_models"]
        for seed in part["fine_tuning_seeds"]
        for dataset in collected.evaluation_sets(part)
    ]


def imported_runs(collection):
    """Imported model and data set of every file of predictions."""
    part = COLLECTIONS[collection]
    return [
        (model, dataset)
        for model in part["imported_models"]
        for dataset in collected.evaluation_sets(part)
        if dataset in IMPORTED_MODELS[model]["files"]
    ]


def trained_predictions(collection):
    """Files of `trained_runs`, in its order."""
    return [
        f"{RUN}/collected/{collection}/predictions/{t}/{m}/seed{s}/{d}.parquet"
        for t, m, s, d in trained_runs(collection)
    ]


def predicted_by(collection):
    """The same by the folder of the model that makes them."""
    found = {}
    runs = trained_runs(collection)
    for (t, m, s, _), path in zip(runs, trained_predictions(collection)):
        folder = f"{RUN}/collected/{collection}/models/{t}/{m}/seed{s}"
        found.setdefault(folder, []).append(path)
    return found


def imported_predictions(collection):
    """Files of `imported_runs`, in its order."""
    return [
        f"{RUN}/collected/{collection}/predictions/imported/{m}/{d}.parquet"
        for m, d in imported_runs(collection)
    ]


def fetched_name(address):
    """Where a file of predictions is kept that is fetched from an address."""
    digest = blake2b(address.encode(), digest_size=6).hexdigest()
    return (
        f"{DOWNLOADS}/predictions/{digest}/{PurePosixPath(urlsplit(address).path).name}"
    )


def imported_file(wildcards):
    """File of predictions that others made, as it lies on disk."""
    return IMPORTED_FILES[wildcards.imported_model, wildcards.dataset]


def fetched_sha256(wildcards):
    """Checksum that a row gives for a fetched file, if any does."""
    sums = [
        row["sha256"].get(dataset)
        for row in IMPORTED_MODELS.values()
        for dataset, path in row["files"].items()
        if path == FETCHED[f"{DOWNLOADS}/predictions/{wildcards.file}"]
    ]
    return next(filter(None, sums), None)


FETCHED = {
    fetched_name(path): path
    for row in IMPORTED_MODELS.values()
    for path in row["files"].values()
    if path.startswith(ADDRESSES)
}
FETCHED_NAMES = {address: name for name, address in FETCHED.items()}
try:
    IMPORTED_FILES = {
        (model, dataset): FETCHED_NAMES.get(path)
        or local_file(f"predictions: {model}.files.{dataset}", path)
        for model, dataset, path in (
            (m, d, IMPORTED_MODELS[m]["files"][d])
            for c in COLLECTIONS
            for m, d in imported_runs(c)
        )
    }
except UserError as error:
    raise WorkflowError(str(error)) from None


def question_sets_of(collection):
    """Data sets of questions that a collection names."""
    return [
        d for d in collected.datasets_of(COLLECTIONS[collection]) if d in QUESTION_SETS
    ]


def questions_of(collection, split):
    """Tables of questions of a collection."""
    return [examples_of(d, split) for d in question_sets_of(collection)]


def collection_params(wildcards):
    """What the evaluation of a collection must know besides its tables."""
    part = COLLECTIONS[wildcards.collection]
    return {
        "sets": {d: DATASETS_READ[d] for d in collected.evaluation_sets(part)},
        "adversarial": part["adversarial"],
        "more_annotators": [
            d for d in collected.evaluation_sets(part) if d in EXAMPLE_SETS
        ],
        "training_sets": {t: p["datasets"] for t, p in part["training_sets"].items()},
        "trained_runs": trained_runs(wildcards.collection),
        "imported_runs": imported_runs(wildcards.collection),
        "families": {m: ALL_MODELS[m]["family"] for m in part["evaluated_models"]},
        "imported": {m: IMPORTED_MODELS[m] for m in part["imported_models"]},
        "settings": {**config["evaluate"], "seed": config["seed"]},
    }


def collected_tables(table):
    """One evaluation table of every collection that has it."""
    return [
        f"{RUN}/evaluation/collected/{collection}/{table}.parquet"
        for collection in COLLECTIONS
        if question_sets_of(collection) or not table.startswith("question_")
    ]


def figure_datasets(row):
    """Rows of the data sets that a figure may show."""
    return COLLECTED_DATASETS if row["study"] != "filtering" else DATASETS


def figure_models(row):
    """Rows of the models that a figure may show."""
    models = config["collected_rows"]["models"]
    return models if row["study"] != "filtering" else MODELS


def figure_collections(row):
    """Collections and imported models that a figure may show."""
    if row["study"] == "filtering":
        return {"collections": {}, "imported": {}}
    return {"collections": COLLECTIONS, "imported": IMPORTED_MODELS}


def collected_files():
    """Tables of collections that no figure asks for."""
    tables = ["collected_scores", "collected_ranks", "collected_penalty_cells"]
    latex = [f"{RUN}/evaluation/collected/cross_training.tex"]
    return (
        [*(f for t in tables for f in collected_tables(t)), *latex]
        if COLLECTIONS
        else []
    )
