"""Scores, ranks and the penalty on sets that people wrote against a model, against hand-worked cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest

from advsets.collected import IMPORTED
from advsets.errors import UserError
from advsets.evaluation.collected.penalty import collected_penalty, collected_penalty_cells
from advsets.evaluation.collected.scores import collected_correlation, collected_ranks, collected_scores
from advsets.evaluation.collected.sets import collected_sets
from advsets.evaluation.collected.study import CollectedRun, CollectedStudy, Identity, scored_set
from advsets.evaluation.collected.training import cross_training, model_in_the_loop
from advsets.evaluation.settings import EvaluateSettings
from advsets.registry import DatasetRow
from advsets.schemas import validate

LABELS = ["entailment", "neutral", "contradiction"]
SETTINGS = EvaluateSettings(200, 0.9, 2, 2, 2, 0)


def row_of(name: str, task: str = "sequence_classification", loop: dict[str, Any] | None = None) -> DatasetRow:
    source = {"kind": "file", "train": "t.csv"}
    order = [] if task == "extractive_qa" else LABELS
    given = {"title": name, "task": task, "label_order": order, "source": source, "model_in_the_loop": loop}
    return DatasetRow.from_config(name, validate({name: given}, "datasets", "test")[name])


def examples(n: int, start: str = "e") -> pl.DataFrame:
    return pl.DataFrame(
        {
            "example_id": [f"{start}{i:03d}" for i in range(n)],
            "label": [LABELS[i % 3] for i in range(n)],
            "agreement": [None] * n,
        },
        schema_overrides={"agreement": pl.Float64},
    )


def labels(frame: pl.DataFrame, n_right: int) -> pl.DataFrame:
    """Predictions of which the first `n_right` are right."""
    given = [g if i < n_right else LABELS[(LABELS.index(g) + 1) % 3] for i, g in enumerate(frame["label"])]
    return frame.select("example_id").with_columns(predicted_label=pl.Series(given, dtype=pl.String))


def study_of(
    right: Mapping[str, Mapping[CollectedRun, int]],
    rows: Mapping[str, DatasetRow],
    identities: Mapping[str, Identity],
    n: int = 40,
) -> CollectedStudy:
    """Classification study: right answers of each run on each set of `n` examples."""
    sets = []
    for name, by_run in right.items():
        frame = examples(n)
        kind = "standard" if rows[name].model_in_the_loop is None else "adversarial"
        sets.append(scored_set(rows[name], kind, frame, {run: labels(frame, k) for run, k in by_run.items()}))
    return CollectedStudy("made", tuple(sets), identities, {"both": ("plain",)}, {"both": 7}, SETTINGS)


LOOP = {"title": "Large", "models": ["large"], "family": "f", "collection_round": 1}
ROWS = {
    "plain": row_of("plain"),
    "hard": row_of("hard", loop=LOOP),
    "other": row_of("other", loop={"title": "Unknown"}),
}
MODELS = {
    "large": Identity("large", "f"),
    "cousin": Identity("cousin", "f"),
    "a": Identity("a", "g"),
    "b": Identity("b", None),
}


def runs(**right: int | tuple[int, ...]) -> dict[CollectedRun, int]:
    pairs = {m: (k,) if isinstance(k, int) else k for m, k in right.items()}
    return {CollectedRun("both", m, seed): k for m, ks in pairs.items() for seed, k in enumerate(ks)}


class TestScores:
    def test_missing_predictions_are_wrong_and_counted(self) -> None:
        frame = examples(10)
        given = labels(frame, 10).head(7)
        one = scored_set(ROWS["plain"], "standard", frame, {CollectedRun("both", "a", 0): given})
        study = CollectedStudy("made", (one,), MODELS, {}, {"both": 1}, SETTINGS)
        row = collected_scores(study).row(0, named=True)
        assert (row["mean_score"], row["n_missing"], row["n_examples"]) == (0.7, 3, 10)

    def test_predictions_are_joined_by_id(self) -> None:
        frame = examples(12)
        shuffled = labels(frame, 5).sample(fraction=1.0, shuffle=True, seed=3)
        extra = pl.DataFrame({"example_id": ["zzz"], "predicted_label": ["neutral"]})
        run = CollectedRun("both", "a", 0)
        one = scored_set(ROWS["plain"], "standard", frame.reverse(), {run: pl.concat([shuffled, extra])})
        assert one.means[0, 0] == 5 / 12

    def test_relations(self) -> None:
        identities = {**MODELS, "bert_r1": Identity("large", "f", in_the_loop_of=frozenset({"hard"}))}
        by_run = {CollectedRun(IMPORTED, m): 10 for m in identities}
        table = collected_scores(study_of({name: by_run for name in ROWS}, ROWS, identities))
        found = {(r["evaluated_model"], r["dataset"]): (r["relation"], r["in_the_loop"]) for r in table.to_dicts()}
        assert found["bert_r1", "hard"] == ("in_the_loop", True)
        assert found["large", "hard"] == ("self", False)
        assert found["cousin", "hard"] == ("same_family", False)
        assert found["a", "hard"] == found["b", "hard"] == ("other", False)
        assert found["bert_r1", "plain"] == ("standard", False)
        assert found["large", "other"] == ("other", False)

    def test_bounds_hold_the_score_and_sets_are_resampled_apart(self) -> None:
        study = study_of({"plain": runs(a=20), "hard": runs(a=20)}, ROWS, MODELS)
        table = collected_scores(study)
        assert (table["mean_score_low"] < 0.5).all() and (table["mean_score_high"] > 0.5).all()
        draws = study.draws
        assert not np.array_equal(draws["plain"], draws["hard"])
        assert draws["plain"].mean() == pytest.approx(0.5, abs=0.02)

    def test_what_a_model_saw(self) -> None:
        identities = {**MODELS, "b": Identity("b", None, saw=frozenset({"hard"}))}
        table = collected_scores(study_of({"plain": runs(a=1, b=1), "hard": runs(a=1, b=1)}, ROWS, identities))
        saw = {(r["evaluated_model"], r["dataset"]): r["saw_training_part"] for r in table.to_dicts()}
        assert saw == {("a", "plain"): True, ("b", "plain"): True, ("a", "hard"): False, ("b", "hard"): True}

    def test_empty_set_is_one_line(self) -> None:
        with pytest.raises(UserError, match="data set plain: no examples to score; allowed: one or more"):
            scored_set(ROWS["plain"], "standard", examples(0), {})


class TestQuestions:
    def test_exact_match_f1_and_beaten(self) -> None:
        frame = pl.DataFrame(
            {
                "example_id": ["1", "2", "3", "4"],
                "answers": [["the red fox", "fox"], ["blue"], ["one two three"], ["x"]],
            }
        )
        given = pl.DataFrame(
            {"example_id": ["3", "1", "2"], "predicted_answer": ["one four five six seven", "Fox!", "a blue sky"]}
        )
        one = scored_set(row_of("q", "extractive_qa"), "standard", frame, {CollectedRun("t", "a", 0): given})
        assert one.measures == ("exact_match", "f1")
        np.testing.assert_allclose(one.scores[0, :, 0], [1, 0, 0, 0])
        np.testing.assert_allclose(one.scores[1, :, 0], [1, 2 / 3, 0.25, 0])
        assert one.beaten[:, 0].tolist() == [False, False, True, True]
        assert one.missing[:, 0].tolist() == [False, False, False, True]

    def test_an_f1_of_just_two_fifths_is_beaten(self) -> None:
        frame = pl.DataFrame({"example_id": ["1"], "answers": [["p q"]]})
        given = pl.DataFrame({"example_id": ["1"], "predicted_answer": ["p r s"]})  # 2 * 1 / (3 + 2)
        one = scored_set(row_of("q", "extractive_qa"), "standard", frame, {CollectedRun("t", "a", 0): given})
        assert one.scores[1, 0, 0] == pytest.approx(0.4) and one.beaten[0, 0]


class TestRanks:
    def test_ranks_are_of_means_over_seeds_with_shared_ties(self) -> None:
        study = study_of({"plain": runs(a=(10, 20), b=15, cousin=30)}, ROWS, MODELS)
        table = collected_ranks(study)
        assert dict(zip(table["evaluated_model"], table["rank"], strict=True)) == {"a": 2.5, "b": 2.5, "cousin": 1.0}

    def test_tau_b_of_reversed_ranks(self) -> None:
        study = study_of({"plain": runs(a=5, b=20, cousin=35), "hard": runs(a=35, b=20, cousin=5)}, ROWS, MODELS)
        row = collected_correlation(study).row(0, named=True)
        assert (row["tau_b"], row["n_models"]) == (-1.0, 3)
        assert row["tau_b_low"] == -1.0 and row["tau_b_high"] <= 0

    def test_one_model_has_no_tau(self) -> None:
        table = collected_correlation(study_of({"plain": runs(a=5), "hard": runs(a=6)}, ROWS, MODELS))
        assert table["tau_b"].to_list() == [None]


class TestPenalty:
    def test_no_penalty_where_effects_add_up(self) -> None:
        # log-odds of 10, 20, 30 of 40 shift alike between models and sets
        study = study_of({"plain": runs(large=20, a=30, b=30), "hard": runs(large=10, a=20, b=20)}, ROWS, MODELS, 40)
        row = collected_penalty(study).filter(pl.col("relation") == "self").row(0, named=True)
        assert row["penalty_log_odds"] == pytest.approx(0, abs=1e-12) and row["n_cells"] == 1

    def test_own_cell_that_is_hit(self) -> None:
        study = study_of({"plain": runs(large=20, a=20, b=20), "hard": runs(large=4, a=20, b=20)}, ROWS, MODELS)
        row = collected_penalty(study).filter(pl.col("relation") == "self").row(0, named=True)
        hit = np.log(4.5) - np.log(36.5)
        # residual of one own cell in a 2 x 3 matrix: (1 - 1/2) (1 - 1/3) of the effect
        assert row["penalty_log_odds"] == pytest.approx(hit / 3)
        assert row["penalty_log_odds_low"] < row["penalty_log_odds"] < row["penalty_log_odds_high"] < 0

    def test_instance_in_the_loop_stays_out(self) -> None:
        identities = {**MODELS, "bert_r1": Identity("large", "f", in_the_loop_of=frozenset({"hard"}))}
        right = {"plain": runs(large=20, a=20, b=20), "hard": runs(large=4, a=20, b=20)}
        without = collected_penalty(study_of(right, ROWS, identities))
        right = {"plain": runs(large=20, a=20, b=20), "hard": runs(large=4, a=20, b=20, bert_r1=0)}
        study = study_of(right, ROWS, identities)
        cells = collected_penalty_cells(study).filter(evaluated_model="bert_r1").to_dicts()
        assert [(c["relation"], c["mean_score"], c["residual_log_odds"]) for c in cells] == [("in_the_loop", 0.0, None)]
        key = ["relation", "penalty_log_odds", "n_cells"]
        assert collected_penalty(study).select(key).equals(without.select(key))

    def test_row_of_one_set_has_none(self) -> None:
        table = collected_penalty(study_of({"hard": runs(large=4, a=20)}, ROWS, MODELS))
        assert table["penalty_log_odds"].to_list() == [None, None]


class TestTraining:
    def test_mean_deviation_and_best(self) -> None:
        by_run = {
            CollectedRun("both", "a", 0): 10,
            CollectedRun("both", "a", 1): 20,
            CollectedRun("more", "a", 0): 16,
            CollectedRun("more", "a", 1): 16,
            CollectedRun(IMPORTED, "b"): 40,
        }
        study = study_of({"plain": by_run}, ROWS, MODELS)
        study = CollectedStudy("made", study.sets, MODELS, {}, {"both": 7, "more": 9}, SETTINGS)
        table = {r["training_set"]: r for r in cross_training(study).to_dicts()}
        assert set(table) == {"both", "more"}
        assert (table["both"]["mean_score"], table["both"]["best"], table["both"]["n_train"]) == (0.375, False, 7)
        assert table["both"]["score_sd"] == pytest.approx(np.std([0.25, 0.5], ddof=1))
        assert (table["more"]["mean_score"], table["more"]["score_sd"], table["more"]["best"]) == (0.4, 0.0, True)

    def test_equal_training_sets_are_both_best(self) -> None:
        by_run = {CollectedRun(t, "a", 0): 10 for t in ("both", "more")}
        study = study_of({"plain": by_run}, ROWS, MODELS)
        study = CollectedStudy("made", study.sets, MODELS, {}, {"both": 1, "more": 1}, SETTINGS)
        table = cross_training(study)
        assert table["best"].all() and table["score_sd"].to_list() == [None, None]

    def test_selection_against_seed_0(self) -> None:
        # seed 0 is right on the first 10 of 40; seeds 1 and 2 on the first 25 and 10
        study = study_of({"plain": runs(a=(10, 25, 10))}, ROWS, MODELS)
        table = model_in_the_loop(study)
        selected = table.filter(how="by_selection").sort("model_seed")
        assert selected["n_examples"].to_list() == [30, 30, 30]
        np.testing.assert_allclose(selected["mean_score"], [0, 15 / 30, 0])
        assert selected["in_the_loop"].to_list() == [True, False, False]
        assert selected["loop_seed"].to_list() == [0, 0, 0]
        whole = table.filter(how="full_set").sort("model_seed")
        np.testing.assert_allclose(whole["mean_score"], [0.25, 0.625, 0.25])

    def test_a_set_written_against_the_base_is_by_people(self) -> None:
        study = study_of({"plain": runs(large=9), "hard": runs(large=4, a=9)}, ROWS, MODELS)
        table = model_in_the_loop(study)
        assert set(zip(table["evaluated_model"], table["dataset"], table["how"], strict=True)) == {
            ("large", "plain", "full_set"),
            ("large", "hard", "by_people"),
            ("a", "hard", "full_set"),
        }

    def test_nothing_selected_has_no_score(self) -> None:
        table = model_in_the_loop(study_of({"plain": runs(a=(40, 3))}, ROWS, MODELS)).filter(how="by_selection")
        assert table["n_examples"].to_list() == [0, 0] and table["mean_score"].to_list() == [None, None]


class TestSets:
    def test_chance_majority_and_agreement_of_verifiers(self) -> None:
        study = study_of({"hard": runs(a=4)}, ROWS, MODELS, n=4)
        frame = examples(4)  # entailment twice
        more = pl.DataFrame({"example_id": ["e000", "e001", "zzz"], "label_count": [[2, 0, 0], [1, 1, 0], [0, 0, 3]]})
        row = collected_sets(study, {"hard": frame}, {"hard": more}).row(0, named=True)
        assert (row["chance"], row["majority"]) == (pytest.approx(1 / 3), 0.5)
        assert (row["n_with_annotators"], row["agreement_mean"], row["unanimous_share"]) == (2, 0.75, 0.5)
        assert (row["model_in_the_loop"], row["collection_round"], row["construction"]) == ("Large", 1, "adversarial")

    def test_questions_have_the_whole_passage_instead(self) -> None:
        frame = pl.DataFrame({"example_id": ["1", "2"], "context": ["red fox", "x"], "answers": [["fox"], ["x"]]})
        given = pl.DataFrame({"example_id": ["1"], "predicted_answer": ["fox"]})
        one = scored_set(row_of("q", "extractive_qa"), "standard", frame, {CollectedRun("t", "a", 0): given})
        study = CollectedStudy("made", (one,), MODELS, {}, {"t": 1}, SETTINGS)
        table = collected_sets(study, {"q": frame}, {})
        found = {r["measure"]: (r["chance"], r["majority"]) for r in table.to_dicts()}
        assert found == {"exact_match": (None, 0.5), "f1": (None, pytest.approx((2 / 3 + 1) / 2))}
