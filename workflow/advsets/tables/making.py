"""Tables that a run makes on its way: examples, representations, rounds, predictions."""

from __future__ import annotations

from advsets.tables.base import (
    ID,
    MARGIN,
    N_CORRECT,
    N_HELD_OUT,
    PREDICTABILITY,
    REMOVED_IN,
    ROUND,
    SPLIT,
    Column,
    Table,
)

LIST = [
    Table(
        "examples",
        (
            ID,
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
        "more_annotators",
        (
            ID,
            Column("label_count", "list<int64>", "annotators per label: label_order, then other_labels", "annotators"),
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
            ID,
            Column("label", "string", "gold label name"),
            Column("group_id", "string", "examples that belong together", nullable=True),
            Column("embedding", "vector", "representation of the adversary"),
        ),
        ("example_id",),
    ),
    Table(
        "candidate_embeddings",
        (
            ID,
            Column("label", "string", "index of the right candidate"),
            Column("group_id", "string", "examples that belong together", nullable=True),
            Column("candidates", "list<vector>", "one representation per candidate"),
        ),
        ("example_id",),
    ),
    Table(
        "filter_state",
        (
            ID,
            SPLIT,
            Column("retained", "bool", "not removed so far"),
            REMOVED_IN,
            N_HELD_OUT,
            N_CORRECT,
            PREDICTABILITY,
            MARGIN,
        ),
        ("split", "example_id"),
    ),
    Table(
        "round_scores",
        (
            ROUND,
            SPLIT,
            ID,
            N_HELD_OUT,
            N_CORRECT,
            PREDICTABILITY,
            MARGIN,
            Column("removed", "bool", "removed in this round"),
        ),
        ("filtering_round", "split", "example_id"),
    ),
    Table(
        "rounds",
        (
            ROUND,
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
        (ID, Column("retained", "bool", "kept by the filter"), REMOVED_IN, PREDICTABILITY, MARGIN),
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
                "accuracy on the rows that choose the checkpoint; of questions their exact match",
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
            ID,
            Column("predicted_label", "string", "label of highest probability; ties go to the first in label order"),
            Column(
                "probabilities",
                "list<float64>",
                "in the stored label order, or one per candidate; empty: imported without",
                "share",
            ),
        ),
        ("example_id",),
    ),
    Table(
        "evaluation_labels",
        (ID, Column("label", "string", "gold label name")),
        ("example_id",),
    ),
]
