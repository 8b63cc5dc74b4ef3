"""Rows of the predictions tables: what ours say, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advsets import config
from advsets.errors import UserError
from advsets.imported_rows import check_imported, check_loop, local_file
from advsets.schemas import validate

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = ("anli_r1", "anli_r2", "anli_r3")


def tables(datasets: str, predictions: str) -> tuple[dict[str, Any], ...]:
    return (
        config.read_rows([ROOT / predictions], "predictions"),
        config.read_rows([ROOT / datasets], "datasets"),
        config.read_rows([ROOT / "config/models.yaml"], "models"),
    )


SHIPPED = tables("config/datasets.yaml", "config/predictions.yaml")
REAL = tables("tests/config/real_datasets.yaml", "tests/config/real_predictions.yaml")


@pytest.mark.parametrize(("imported", "datasets", "models"), [SHIPPED, REAL], ids=["shipped", "real"])
def test_our_rows_fit_the_other_tables(imported: Any, datasets: Any, models: Any) -> None:
    for name, row in imported.items():
        check_imported(name, row, datasets, models)
    for name, row in datasets.items():
        loop = row["model_in_the_loop"] or {"models": [], "family": None}
        for model in loop["models"]:
            assert models[model]["family"] == loop["family"], name


def test_eight_models_were_tried_on_every_round_of_anli() -> None:
    imported, datasets, _ = SHIPPED
    assert len(imported) == 8
    assert all(tuple(row["files"]) == ROUNDS for row in imported.values())
    in_the_loop = {name: row["in_the_loop_of"] for name, row in imported.items() if row["in_the_loop_of"]}
    assert in_the_loop == {
        "anli_bert_r1": ["anli_r1"],
        "anli_roberta_from_r2": ["anli_r2"],
        "anli_roberta_from_r3": ["anli_r3"],
    }
    for name, (dataset,) in in_the_loop.items():
        assert imported[name]["base_model"] in datasets[dataset]["model_in_the_loop"]["models"]
    seen = [len(set(row["saw"]) & set(ROUNDS)) for row in imported.values()]
    assert seen == [0, 1, 2, 3, 3, 3, 3, 3]


def test_real_rows_are_the_shipped_ones_on_other_data_sets() -> None:
    shipped, real = SHIPPED[0], REAL[0]
    assert set(real) - set(shipped) == {"squad_bert_ensemble", "squad_logistic_regression"}
    for name, row in shipped.items():
        assert set(row["sha256"]) == set(row["files"]), "what is fetched is checked"
        for key in set(row) - {"files", "sha256", "saw", "in_the_loop_of"}:
            assert real[name][key] == row[key]
        assert [Path(file).name for file in real[name]["files"].values()] == [
            Path(file).name for file in row["files"].values()
        ]


DATASETS = {
    "loop": {
        "title": "Loop",
        "task": "sequence_classification",
        "label_order": ["yes", "no"],
        "model_in_the_loop": {"title": "Some model"},
        "source": {"kind": "file", "train": "t"},
    },
    "plain": {
        "title": "Plain",
        "task": "sequence_classification",
        "label_order": ["yes", "no"],
        "source": {"kind": "file", "train": "t"},
    },
    "questions": {"title": "Questions", "task": "extractive_qa", "source": {"kind": "file", "train": "t"}},
}
MODELS = {"small": {"family": "bert", "source": {"kind": "path", "path": "p"}}}
GOOD: dict[str, Any] = {
    "files": {"loop": "f.csv"},
    "columns": {"id": "uid", "predicted_label": "said"},
    "in_the_loop_of": ["loop"],
    "saw": ["plain"],
    "base_model": "small",
    "family": "bert",
    "labels": {"y": "yes", "n": "no"},
}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "data set of a file": ({"files": {"lop": "f"}}, "files: no row 'lop' in the data sets tables; .* mean 'loop'"),
    "data set seen": ({"saw": ["zzz"]}, "saw: no row 'zzz' .*allowed: loop, plain, questions; correct it or name the"),
    "in no loop": ({"in_the_loop_of": ["plain"]}, "in_the_loop_of: 'plain' has no model_in_the_loop; allowed: sets"),
    "base model": ({"base_model": "smal"}, "base_model: no row 'smal' in the models tables; .* mean 'small'"),
    "family": ({"family": "brt", "base_model": None}, "family: no family 'brt' in the models tables; .* mean 'bert'"),
    "family of the base model": ({"family": None}, "family: found None; allowed: 'bert', that of base_model 'small'"),
    "answers to pairs": ({"columns": {"answer": "a"}}, "columns.answer: found 'a', but 'loop' has task sequence_cl"),
    "labels of questions": (
        {"files": {"questions": "f"}},
        "columns.predicted_label: found 'said', but 'questions' has",
    ),
    "no path": ({"files": {"loop": " "}}, "files.loop: found ' '; allowed: a path, or an address that starts with"),
    "no address": ({"files": {"loop": "ftp://a/f.csv"}}, "files.loop: found 'ftp://a/f.csv'; allowed: a path, or"),
    "no file": ({"files": {"loop": "https://a.b/"}}, "files.loop: found 'https://a.b/', which names no file; allowed"),
    "no host": ({"files": {"loop": "https://[a/f.csv"}}, "files.loop: found 'https://.a/f.csv', which names no file"),
    "no labels": (
        {"columns": {"id": "uid"}},
        "columns: found id 'uid' and no column of predictions; .* predicted_label",
    ),
    "no answers": (
        {"files": {"questions": "f.csv"}, "columns": {"id": "uid"}},
        "found id 'uid' and no column of predictions; allowed on 'questions': answer; name it",
    ),
    "short order": (
        {"columns": {"id": "uid", "probabilities": "p"}, "probability_order": ["y"]},
        r"probability_order: found 1 entries \(y\), but 'loop' has 2 labels; allowed: one for each of yes, no",
    ),
    "short columns": (
        {"columns": {"id": "uid", "probabilities": ["p_y"]}},
        r"columns.probabilities: found 1 entries \(p_y\), but 'loop' has 2 labels",
    ),
    "checksum of no file": ({"sha256": {"lop": "0" * 64}}, "sha256: no row 'lop' in the data sets tables; .* 'loop'"),
    "checksum of a local file": (
        {"sha256": {"loop": "0" * 64}},
        "sha256.loop: `files` has no address for 'loop'; allowed: checksums of files that are fetched",
    ),
    "label of no set": ({"labels": {"y": "yess"}}, "labels maps 'y' to 'yess', which 'loop' has not; allowed: yes, no"),
}


def check(changes: dict[str, Any]) -> None:
    row = validate({"mine": {**GOOD, **changes}}, "predictions", "table")["mine"]
    check_imported("mine", row, validate(DATASETS, "datasets", "table"), validate(MODELS, "models", "table"))


def test_a_right_row_passes() -> None:
    check({})
    check({"base_model": None})
    check({"files": {"questions": "f.json"}, "columns": {}, "labels": None})


@pytest.mark.parametrize("case", BAD)
def test_wrong_rows_are_told(case: str) -> None:
    changes, message = BAD[case]
    with pytest.raises(UserError, match=message) as caught:
        check(changes)
    assert str(caught.value).startswith("imported model mine: ")


def test_a_file_of_predictions_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("uid\n", encoding="utf-8")
    assert local_file("predictions: mine.files.loop", str(tmp_path / "f.csv")) == str(tmp_path / "f.csv")
    for path, found in ((tmp_path / "g.csv", "no such file"), (tmp_path, "it is a folder")):
        with pytest.raises(UserError, match=found) as caught:
            local_file("predictions: mine.files.loop", str(path))
        assert str(caught.value).startswith(f"predictions: mine.files.loop: {path}: ")


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ({"models": ["smal"], "family": "bert"}, ".models: no row 'smal' in the models tables; .* mean 'small'"),
        ({"models": ["small"], "family": "gpt"}, ".family: found 'gpt'; allowed: 'bert', that of 'small'; correct one"),
        ({"models": ["small"]}, ".family: found None; allowed: 'bert', that of 'small'"),
        ({"family": "brt"}, ".family: no family 'brt' in the models tables; .* mean 'bert'"),
    ],
)
def test_a_model_in_the_loop_must_be_known(loop: dict[str, Any], message: str) -> None:
    rows = {"loop": {**DATASETS["loop"], "model_in_the_loop": {"title": "Some model", **loop}}}
    row, models = validate(rows, "datasets", "table")["loop"], validate(MODELS, "models", "table")
    with pytest.raises(UserError, match=f"^data set loop: model_in_the_loop{message}"):
        check_loop("loop", row, models)
    check_loop("loop", validate(DATASETS, "datasets", "table")["loop"], models)
