"""Tables of extractive question answering: questions with their passages, and predicted answers."""

from __future__ import annotations

from advsets.tables.base import ID, Column, Table

LIST = [
    Table(
        "questions",
        (
            ID,
            Column("source_id", "string", "key in the source, as it stood there", nullable=True),
            Column("split", "string", "`train`, `validation` (chooses checkpoints) or `test` (is reported)"),
            Column("document_id", "string", "document of the passage, e.g. the title; the passage_id where unknown"),
            Column("passage_id", "string", "hash of the passage's text, case folded and with white space squeezed"),
            Column("context", "string", "the passage"),
            Column("question", "string", "the question"),
            Column("answers", "list<string>", "gold answers"),
            Column(
                "answer_starts", "list<int64>", "where each begins in the passage; -1: not known", "Unicode code points"
            ),
        ),
        ("example_id",),
    ),
    Table(
        "answer_mismatches",
        (
            Column("split", "string", "`train` or `evaluation`"),
            ID,
            Column("answer", "string", "gold answer"),
            Column("answer_start", "int64", "where the source says that it begins", "Unicode code points"),
            Column("found", "string", "the passage's text there, as long as the answer"),
            Column(
                "outcome",
                "string",
                "`moved` to the one place that holds it; `kept_without_offset`: for scoring alone; `dropped`: a"
                " training question whose answers are all at unknown places",
            ),
        ),
        ("split", "example_id", "answer", "answer_start"),
    ),
    Table(
        "answer_predictions",
        (
            ID,
            Column("predicted_answer", "string", "best answer; empty: none"),
            Column("answer_start", "int64", "where it begins in the passage; -1: not known", "Unicode code points"),
            Column("logit", "float64", "sum of start and end logit, comparable within a question", "logit", True),
            Column("best_answers", "list<string>", "best answers in falling order"),
            Column("best_logits", "list<float64>", "their scores", "logit"),
        ),
        ("example_id",),
    ),
    Table(
        "answer_scores",
        (
            ID,
            Column("n_answers", "int64", "gold answers", "answers"),
            Column("predicted_answer", "string", "answer that was scored; null: missing", nullable=True),
            Column("exact_match", "int64", "1: equal to a gold answer after normalisation; missing: 0"),
            Column("f1", "float64", "overlap of tokens with the nearest gold answer; missing: 0", "share"),
        ),
        ("example_id",),
    ),
]
