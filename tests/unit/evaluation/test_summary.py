"""What `advsets summary` prints of a run, with and without filtering."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from advsets.errors import UserError
from advsets.evaluation.frames import table_frame
from advsets.evaluation.summary import print_summary
from advsets.io import write_table

SCORES = {
    ("plain", "trained", "small"): (0.7, "standard"),
    ("plain", "trained", "large"): (0.8, "standard"),
    ("hard", "trained", "small"): (0.4, "other"),
    ("hard", "trained", "large"): (0.3, "self"),
    ("hard", "imported", "asked"): (0.0, "in_the_loop"),
    ("hard", "imported", "other"): (0.25, "same_family"),
}


def write(folder: Path, table: str, rows: list[dict[str, Any]]) -> None:
    write_table(
        table_frame(table, [{"collection": folder.name, **row} for row in rows]), folder / f"{table}.parquet", table
    )


def write_collection(run: Path, name: str = "pairs", n_own: int = 1, measure: str = "accuracy") -> Path:
    """Tables of a collection of two sets; the penalty of `n_own` cells."""
    folder = run / "evaluation" / "collected" / name
    folder.mkdir(parents=True)
    blank = dict.fromkeys(("collection_round", "family", "agreement_mean", "unanimous_share"))
    levels = {"chance": 1 / 3 if measure == "accuracy" else None, "majority": 0.35, "measure": measure}
    sets = {"plain": ("standard", None), "hard": ("adversarial", "A large model")}
    described = [
        {
            **blank,
            **levels,
            "dataset": d,
            "construction": c,
            "model_in_the_loop": m,
            "n_examples": 9,
            "n_with_annotators": 0,
        }
        for d, (c, m) in sets.items()
    ]
    write(folder, "collected_sets", described)
    keys = [{"dataset": d, "training_set": t, "evaluated_model": m, "measure": measure} for d, t, m in SCORES]
    ranks, cells = [], []
    for key, ((d, t, _), (score, relation)) in zip(keys, SCORES.items(), strict=True):
        rivals = [other for (a, b, _), (other, _) in SCORES.items() if (a, b) == (d, t)]
        rank = 1.0 + sum(other > score for other in rivals)
        ranks.append({**key, "mean_score": score, "rank": rank, "n_models": len(rivals)})
        cells.append({**key, "mean_score": score, "relation": relation, "residual_log_odds": None})
    write(folder, "collected_ranks", ranks)
    write(folder, "collected_penalty_cells", cells)
    own = {"training_set": "trained", "measure": measure}
    bounds = {"penalty_log_odds": -0.2, "penalty_log_odds_low": -0.31, "penalty_log_odds_high": 0.05}
    none = dict.fromkeys(bounds)
    penalty = [
        {**own, "relation": "self", "n_cells": n_own, **(bounds if n_own else none)},
        {**own, "relation": "same_family", "n_cells": 0, **none},
    ]
    write(folder, "collected_penalty", penalty)
    return folder


def write_findings(run: Path) -> None:
    row = {
        "dataset": "movies",
        "finding": "a",
        "statement": "It falls.",
        "verdict": "holds",
        "measure": "m",
        "detail": "d",
    }
    frame = table_frame("findings", [{**row, "value": -0.1, "low": -0.2, "high": -0.05}])
    (run / "evaluation" / "movies").mkdir(parents=True)
    write_table(frame, run / "evaluation" / "movies" / "findings.parquet", "findings")


def summary_of(run: Path) -> list[str]:
    stream = io.StringIO()
    print_summary(run, stream)
    return stream.getvalue().splitlines()


def test_a_run_without_filtering_tells_what_its_collections_show(tmp_path: Path) -> None:
    folder = write_collection(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "adversarial_collection.pdf").write_text("figure")
    (tmp_path / "evaluation" / "collected" / "cross_training.tex").write_text("table")
    assert summary_of(tmp_path) == [
        "Collection pairs:",
        "  Self-adversary penalty (log-odds [interval]; below 0: hit harder than others):",
        "    trained, accuracy, same base model: -0.200 [-0.310, 0.050], 1 cell",
        "  plain, standard set (accuracy; chance 0.333; most frequent label 0.350), best first",
        "    trained: 1 large 0.800, 2 small 0.700",
        "  hard, against A large model (accuracy; chance 0.333; most frequent label 0.350), best first",
        "    imported: 1 other 0.250, 2 asked 0.000 (in the loop)",
        "    trained: 1 small 0.400, 2 large 0.300",
        "",
        "Tables of collections:",
        f"  {folder}",
        "Scores by training set in LaTeX:",
        f"  {tmp_path / 'evaluation/collected/cross_training.tex'}",
        "Figures:",
        f"  {tmp_path / 'figures/adversarial_collection.pdf'}",
    ]


def test_without_own_cells_there_is_no_penalty_and_questions_are_ranked_by_f1(tmp_path: Path) -> None:
    write_collection(tmp_path, n_own=0, measure="f1")
    lines = summary_of(tmp_path)
    assert lines[1] == "  No model is of the base or the family of a model in the loop: no self-adversary penalty."
    assert lines[2] == "  plain, standard set (F1; whole passage as answer 0.350), best first"


def test_a_run_of_both_tells_both(tmp_path: Path) -> None:
    write_findings(tmp_path)
    assert summary_of(tmp_path)[0] == "Findings on movies:"
    write_collection(tmp_path, "first")
    (write_collection(tmp_path, "unfinished") / "collected_penalty.parquet").unlink()
    lines = summary_of(tmp_path)
    assert lines.index("Findings on movies:") < lines.index("Collection first:")
    assert not any("unfinished" in line for line in lines)


def test_long_rows_part_between_models(tmp_path: Path) -> None:
    from advsets.evaluation.collected_summary import collection_text

    lines = collection_text(write_collection(tmp_path), width=40).splitlines()
    assert "    imported: 1 other 0.250," in lines and "        2 asked 0.000 (in the loop)" in lines


def test_nothing_to_tell_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"neither evaluation/\*/findings\.parquet nor tables in evaluation/collected/"):
        print_summary(tmp_path, io.StringIO())
