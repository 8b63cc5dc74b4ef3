"""Every table's columns: name, dtype, unit and meaning. The only place where they stand.

Conventions
-----------
dtypes: "string", "bool", "int64", "float64", "list<string>", "list<int64>", "list<float64>",
"vector" (list of fixed size, float32 or float16) and "list<vector>".
Shares and rates run from 0 to 1. Columns that end in `_s` are seconds and may differ between
two runs on the same input; every other column may not.
Tables are sorted by their `key` before they are written, so equal content gives equal files.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column: its dtype, whether nulls are allowed, unit (empty if none) and meaning."""

    name: str
    dtype: str
    meaning: str
    unit: str = ""
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    """A table: its columns in order, and the columns that identify a row."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def column_names(self) -> list[str]:
        return [c.name for c in self.columns]


_ID = Column("example_id", "string", "identifier, unique within a data set")
_DATASET = Column("dataset", "string", "row name in the data sets table")
_ADVERSARY = Column("adversary", "string", "model whose representation decided what is kept")
_ADVERSARY_SEED = Column("adversary_seed", "int64", "fine-tuning seed of the adversary")
_NULL_ADVERSARY = Column(
    "adversary", "string", "adversary that made or sized the subset; null: full set", nullable=True
)
_NULL_ADVERSARY_SEED = Column("adversary_seed", "int64", "its fine-tuning seed; null: full set", nullable=True)
_EVALUATED_MODEL = Column("evaluated_model", "string", "model whose score is reported")
_MODEL_SEED = Column("model_seed", "int64", "fine-tuning seed of the evaluated model")
_SUBSET = Column("subset", "string", "`full_set`, `filtered` or `random_subset` (size-matched control)")
_SPLIT = Column("split", "string", "`train` or `evaluation`")
_ROUND = Column("filtering_round", "int64", "filtering round, from 1")
_PREDICTABILITY = Column(
    "predictability",
    "float64",
    "correct share of the classifiers that held the row out; null: never held out",
    "share",
    True,
)
_MARGIN = Column(
    "margin",
    "float64",
    "mean over held-out classifiers of true-class minus best other score; null: never held out, or its class has left",
    "logit",
    True,
)
_REMOVED_IN = Column("removed_in_round", "int64", "round that removed the row; null if retained", nullable=True)
_N_HELD_OUT = Column("n_held_out", "int64", "classifiers that did not train on the row", "classifiers")
_N_CORRECT = Column("n_correct", "int64", "of these, how many predicted it right", "classifiers")

_ACCURACY = (
    Column(
        "accuracy",
        "float64",
        "share predicted right; `random_subset`: mean over draws; null: empty subset",
        "share",
        True,
    ),
    Column("accuracy_low", "float64", "bootstrap bound over examples; `random_subset`: lowest draw", "share", True),
    Column(
        "accuracy_high",
        "float64",
        "bootstrap bound over examples; `random_subset`: highest draw",
        "share",
        True,
    ),
)

_LIST = [
    Table(
        "examples",
        (
            _ID,
            Column("source_id", "string", "key in the source, as it stood there", nullable=True),
            Column("split", "string", "split of the source: `train`, `validation` or `test`"),
            Column(
                "train_role",
                "string",
                "train rows: `adversary` (fine-tunes the adversary) or `filtering` (AFLite's training rows)",
                nullable=True,
            ),
            Column("text_a", "string", "text, premise, or context of a multiple-choice example"),
            Column("text_b", "string", "second text of a pair", nullable=True),
            Column("candidates", "list<string>", "answers to choose from (multiple choice)", nullable=True),
            Column("label", "string", "gold label name; multiple choice: index of the right candidate"),
            Column("group_id", "string", "examples that belong together, e.g. of one premise", nullable=True),
            Column(
                "label_count", "list<int64>", "annotators per label: label_order, then other_labels", "annotators", True
            ),
            Column("agreement", "float64", "share of annotators with the gold label", "share", True),
            Column("label_entropy_bits", "float64", "entropy of the annotators' labels", "bits", True),
            Column(
                "low_agreement", "bool", "flag of the source: few annotators agree with the gold label", nullable=True
            ),
        ),
        ("example_id",),
    ),
    Table(
        "dropped",
        (
            Column("split", "string", "split of the source"),
            Column("reason", "string", "why rows were dropped, or what was counted"),
            Column("n_examples", "int64", "rows", "examples"),
            Column("dropped", "bool", "false: counted, but kept"),
        ),
        ("split", "reason"),
    ),
    Table(
        "embeddings",
        (
            _ID,
            Column("label", "string", "gold label name"),
            Column("group_id", "string", "examples that belong together", nullable=True),
            Column("embedding", "vector", "representation of the adversary"),
        ),
        ("example_id",),
    ),
    Table(
        "candidate_embeddings",
        (
            _ID,
            Column("label", "string", "index of the right candidate"),
            Column("group_id", "string", "examples that belong together", nullable=True),
            Column("candidates", "list<vector>", "one representation per candidate"),
        ),
        ("example_id",),
    ),
    Table(
        "filter_state",
        (
            _ID,
            _SPLIT,
            Column("retained", "bool", "not removed so far"),
            _REMOVED_IN,
            _N_HELD_OUT,
            _N_CORRECT,
            _PREDICTABILITY,
            _MARGIN,
        ),
        ("split", "example_id"),
    ),
    Table(
        "round_scores",
        (
            _ROUND,
            _SPLIT,
            _ID,
            _N_HELD_OUT,
            _N_CORRECT,
            _PREDICTABILITY,
            _MARGIN,
            Column("removed", "bool", "removed in this round"),
        ),
        ("filtering_round", "split", "example_id"),
    ),
    Table(
        "rounds",
        (
            _ROUND,
            Column("n_train_before", "int64", "training rows at the start of the round", "examples"),
            Column("n_train_removed", "int64", "training rows removed", "examples"),
            Column("n_evaluation_before", "int64", "evaluation rows at the start of the round", "examples"),
            Column("n_evaluation_removed", "int64", "evaluation rows removed", "examples"),
            Column(
                "n_tied_at_cut",
                "int64",
                "training candidates as predictable as the last one removed; 0 if all were removed",
                "examples",
            ),
            Column(
                "n_never_held_out", "int64", "training rows in every subset, so of unknown predictability", "examples"
            ),
            Column("n_partitions", "int64", "classifiers fitted", "classifiers"),
            Column("train_size", "int64", "rows each classifier was fitted on", "examples"),
            Column("held_out_accuracy", "float64", "classifiers on training rows they did not see", "share", True),
            Column("held_out_accuracy_retained", "float64", "the same over rows kept by this round", "share", True),
            Column("evaluation_accuracy", "float64", "classifiers on evaluation rows before removal", "share", True),
            Column("evaluation_accuracy_retained", "float64", "the same over rows kept by this round", "share", True),
            Column("n_converged", "int64", "fits that met the tolerance", "classifiers"),
            Column("n_stopped", "int64", "fits that met the iteration limit", "classifiers"),
            Column(
                "n_failed", "int64", "fits that could go no further: not finite, or no step is lower", "classifiers"
            ),
            Column("max_gradient_norm", "float64", "largest gradient entry of any fit, per training row"),
            Column("n_passes", "int64", "passes over the data that the fits took", "passes"),
            Column("stop_reason", "string", "why filtering ended after this round; null: it went on", nullable=True),
            Column("duration_s", "float64", "wall clock of the round", "s"),
        ),
        ("filtering_round",),
    ),
    Table(
        "retained",
        (_ID, Column("retained", "bool", "kept by the filter"), _REMOVED_IN, _PREDICTABILITY, _MARGIN),
        ("example_id",),
    ),
    Table(
        "training_log",
        (
            Column("step", "int64", "optimiser step", "steps"),
            Column("epoch", "float64", "share of the training rows seen", "epochs"),
            Column("loss", "float64", "mean cross-entropy since the previous line", "nats"),
            Column("learning_rate", "float64", "learning rate of the step"),
            Column(
                "selection_accuracy",
                "float64",
                "accuracy on the slice of train that chooses the checkpoint",
                "share",
                True,
            ),
            Column("duration_s", "float64", "wall clock since the start", "s"),
        ),
        ("step",),
    ),
    Table(
        "predictions",
        (
            _ID,
            Column("predicted_label", "string", "label of highest probability; ties go to the first in label order"),
            Column("probabilities", "list<float64>", "in the stored label order, or one per candidate", "share"),
        ),
        ("example_id",),
    ),
    Table(
        "evaluation_labels",
        (_ID, Column("label", "string", "gold label name")),
        ("example_id",),
    ),
    Table(
        "accuracy",
        (
            _DATASET,
            _SUBSET,
            _NULL_ADVERSARY,
            _NULL_ADVERSARY_SEED,
            _EVALUATED_MODEL,
            _MODEL_SEED,
            Column("n_examples", "int64", "examples in the subset", "examples"),
            *_ACCURACY,
        ),
        ("subset", "adversary", "adversary_seed", "evaluated_model", "model_seed"),
    ),
    Table(
        "ranks",
        (
            _DATASET,
            _ADVERSARY,
            _ADVERSARY_SEED,
            _EVALUATED_MODEL,
            Column("accuracy_full_set", "float64", "mean over model seeds", "share"),
            Column("accuracy_filtered", "float64", "mean over model seeds; null: empty subset", "share", True),
            Column("rank_full_set", "float64", "1 is best; ties share the mean rank", "rank"),
            Column("rank_filtered", "float64", "1 is best; ties share the mean rank", "rank", True),
            Column(
                "adversary_strength",
                "float64",
                "accuracy of the same model on the full set, mean over seeds",
                "share",
                True,
            ),
        ),
        ("adversary", "adversary_seed", "evaluated_model"),
    ),
    Table(
        "rank_stability",
        (
            _DATASET,
            _ADVERSARY,
            _ADVERSARY_SEED,
            Column("n_retained", "int64", "evaluation rows kept", "examples"),
            Column("retained_share", "float64", "kept rows of all", "share"),
            Column(
                "adversary_strength",
                "float64",
                "accuracy of the same model on the full set, mean over seeds",
                "share",
                True,
            ),
            Column("tau_b", "float64", "Kendall tau-b of model accuracies, filtered against full set", nullable=True),
            Column("tau_b_low", "float64", "bootstrap bound over examples", nullable=True),
            Column("tau_b_high", "float64", "bootstrap bound over examples", nullable=True),
            Column("tau_b_random_mean", "float64", "mean over size-matched random subsets", nullable=True),
            Column("tau_b_random_low", "float64", "lowest draw", nullable=True),
            Column("tau_b_random_high", "float64", "highest draw", nullable=True),
            Column("rank_change_mean", "float64", "mean absolute change of rank", "ranks", True),
            Column("rank_change_random_mean", "float64", "the same over random subsets", "ranks", True),
        ),
        ("adversary", "adversary_seed"),
    ),
    Table(
        "penalty",
        (
            _DATASET,
            Column("relation", "string", "`self` (same base model) or `same_family`"),
            Column("n_cells", "int64", "cells of the matrix with this relation", "cells"),
            Column(
                "penalty_log_odds",
                "float64",
                "mean residual of these cells; below 0: worse than expected",
                "log-odds",
                True,
            ),
            Column("penalty_low", "float64", "interval bound", "log-odds", True),
            Column("penalty_high", "float64", "interval bound", "log-odds", True),
            Column(
                "interval_over",
                "string",
                "what was resampled: `examples` or `examples and fine-tuning seeds` (of one role, if named)",
            ),
        ),
        ("relation",),
    ),
    Table(
        "penalty_cells",
        (
            _DATASET,
            _ADVERSARY,
            _EVALUATED_MODEL,
            Column("relation", "string", "`self`, `same_family` or `other`"),
            Column("accuracy_full_set", "float64", "mean over seeds", "share"),
            Column("accuracy_filtered", "float64", "mean over seeds; null: empty subset", "share", True),
            Column("accuracy_random", "float64", "mean over size-matched random subsets and seeds", "share", True),
            Column("residual_log_odds", "float64", "against adversary + evaluated-model effects", "log-odds", True),
        ),
        ("adversary", "evaluated_model"),
    ),
    Table(
        "agreement",
        (
            _DATASET,
            _ADVERSARY,
            _ADVERSARY_SEED,
            Column("gold_label", "string", "gold class; null: all classes together", nullable=True),
            Column("subset", "string", "`full_set`, `retained` or `removed`"),
            Column(
                "n_examples",
                "int64",
                "examples with agreement, or with the flag where no example has agreement",
                "examples",
            ),
            Column(
                "n_flagged", "int64", "examples of which the low-agreement flag is known; null: none", "examples", True
            ),
            Column("agreement_mean", "float64", "mean share of annotators with the gold label", "share", True),
            Column("agreement_low", "float64", "bootstrap bound over examples", "share", True),
            Column("agreement_high", "float64", "bootstrap bound over examples", "share", True),
            Column("label_entropy_bits_mean", "float64", "mean entropy of the annotators' labels", "bits", True),
            Column("low_agreement_share", "float64", "share of examples with the low-agreement flag", "share", True),
            Column("low_agreement_low", "float64", "bootstrap bound over examples", "share", True),
            Column("low_agreement_high", "float64", "bootstrap bound over examples", "share", True),
        ),
        ("adversary", "adversary_seed", "gold_label", "subset"),
    ),
    Table(
        "agreement_histogram",
        (
            _DATASET,
            _ADVERSARY,
            _ADVERSARY_SEED,
            Column("subset", "string", "`full_set`, `retained` or `removed`"),
            Column("bin_low", "float64", "lower edge of agreement, inclusive", "share"),
            Column("bin_high", "float64", "upper edge, exclusive but for the last", "share"),
            Column("n_examples", "int64", "examples in the bin", "examples"),
            Column("share", "float64", "of the subset", "share", True),
        ),
        ("adversary", "adversary_seed", "subset", "bin_low"),
    ),
    Table(
        "accuracy_by_agreement",
        (
            _DATASET,
            _EVALUATED_MODEL,
            Column("bin_low", "float64", "lower edge of agreement, inclusive", "share"),
            Column("bin_high", "float64", "upper edge, exclusive but for the last", "share"),
            Column("n_examples", "int64", "examples in the bin", "examples"),
            Column("accuracy", "float64", "mean over seeds; null: empty bin", "share", True),
        ),
        ("evaluated_model", "bin_low"),
    ),
    Table(
        "own_scores",
        (
            _EVALUATED_MODEL,
            _SUBSET,
            Column("n_examples", "int64", "examples in the subset", "examples"),
            Column(
                "n_missing",
                "int64",
                "of these without a prediction, counted as wrong; `random_subset`: rounded mean over draws",
                "examples",
            ),
            *_ACCURACY,
        ),
        ("evaluated_model", "subset"),
    ),
    Table(
        "label_balance",
        (
            _DATASET,
            _ADVERSARY,
            _ADVERSARY_SEED,
            Column("gold_label", "string", "gold class"),
            Column("share_full_set", "float64", "of the full set", "share"),
            Column("share_filtered", "float64", "of the filtered subset; null: empty subset", "share", True),
            Column("share_random_low", "float64", "lowest size-matched random subset", "share", True),
            Column("share_random_high", "float64", "highest size-matched random subset", "share", True),
        ),
        ("adversary", "adversary_seed", "gold_label"),
    ),
    Table(
        "soft_scores",
        (
            _DATASET,
            _SUBSET,
            _NULL_ADVERSARY,
            _NULL_ADVERSARY_SEED,
            _EVALUATED_MODEL,
            Column("n_examples", "int64", "examples with a label distribution", "examples"),
            Column(
                "cross_entropy_nats",
                "float64",
                "of the annotators' distribution under the model, mean over seeds",
                "nats",
                True,
            ),
            Column(
                "js_distance", "float64", "square root of the Jensen-Shannon divergence (natural log), mean", "", True
            ),
        ),
        ("subset", "adversary", "adversary_seed", "evaluated_model"),
    ),
    Table(
        "findings",
        (
            _DATASET,
            Column("finding", "string", "letter of the finding"),
            Column("statement", "string", "what the paper found"),
            Column("verdict", "string", "`holds`, `does not hold` or `undecided`"),
            Column("measure", "string", "what the number is"),
            Column("value", "float64", "the number", nullable=True),
            Column("low", "float64", "interval bound", nullable=True),
            Column("high", "float64", "interval bound", nullable=True),
            Column("detail", "string", "how the verdict was reached, with n"),
        ),
        ("finding",),
    ),
]

TABLES: dict[str, Table] = {table.name: table for table in _LIST}
