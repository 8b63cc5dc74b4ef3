"""Tables of adversarially collected sets: scores by set, self-adversary penalty, training sets, questions."""

from __future__ import annotations

from advsets.tables.base import Column, Table

COLLECTION = Column("collection", "string", "name of the collection in the run's configuration")
SET = Column("dataset", "string", "evaluation set: row name in the data sets table")
TRAINING_SET = Column("training_set", "string", "what the model was trained on; `imported`: not by this run")
MODEL = Column("evaluated_model", "string", "row of the models tables, or of an imported model")
SEED = Column("model_seed", "int64", "fine-tuning seed; null: imported predictions", nullable=True)
MEASURE = Column("measure", "string", "`accuracy`, `exact_match` or `f1`")
IN_THE_LOOP = Column("in_the_loop", "bool", "this very instance was the model in the loop of the set")
RELATION = Column(
    "relation",
    "string",
    "`in_the_loop`, `self` (same base model as the one in the loop), `same_family`, `other`, or `standard` (no model"
    " in the loop)",
)


def _interval(name: str, meaning: str, over: str, unit: str = "") -> tuple[Column, Column, Column]:
    return (
        Column(name, "float64", meaning, unit, True),
        Column(f"{name}_low", "float64", f"bootstrap bound over {over}", unit, True),
        Column(f"{name}_high", "float64", f"bootstrap bound over {over}", unit, True),
    )


LIST = [
    Table(
        "collected_sets",
        (
            COLLECTION,
            SET,
            Column("construction", "string", "`standard` (no model in the loop) or `adversarial`"),
            Column("collection_round", "int64", "round of a collection in several; null: of one", nullable=True),
            Column("model_in_the_loop", "string", "title of the model that people wrote against", nullable=True),
            Column("family", "string", "its family", nullable=True),
            MEASURE,
            Column("n_examples", "int64", "examples that are scored", "examples"),
            Column("chance", "float64", "score of guessing every label alike; null: question answering", "share", True),
            Column(
                "majority",
                "float64",
                "score of the most frequent label; questions: of the whole passage as answer",
                "share",
                True,
            ),
            Column("n_with_annotators", "int64", "examples with labels of single annotators", "examples"),
            Column("agreement_mean", "float64", "mean share of annotators with the gold label", "share", True),
            Column("unanimous_share", "float64", "share of examples whose annotators all gave it", "share", True),
        ),
        ("collection", "dataset", "measure"),
    ),
    Table(
        "collected_scores",
        (
            COLLECTION,
            TRAINING_SET,
            MODEL,
            SEED,
            SET,
            MEASURE,
            RELATION,
            IN_THE_LOOP,
            Column("n_examples", "int64", "examples scored", "examples"),
            Column("n_missing", "int64", "of these without a prediction: counted as wrong", "examples"),
            *_interval("mean_score", "mean score", "examples of the set", "share"),
            Column(
                "saw_training_part", "bool", "the model was trained on the training part of this set", nullable=True
            ),
        ),
        ("collection", "dataset", "measure", "training_set", "evaluated_model", "model_seed"),
    ),
    Table(
        "collected_ranks",
        (
            COLLECTION,
            TRAINING_SET,
            MODEL,
            SET,
            MEASURE,
            Column("mean_score", "float64", "mean over model seeds", "share"),
            Column("rank", "float64", "1 is best; ties share the mean rank", "rank"),
            Column("n_models", "int64", "models ranked", "models"),
        ),
        ("collection", "training_set", "dataset", "measure", "evaluated_model"),
    ),
    Table(
        "collected_correlation",
        (
            COLLECTION,
            TRAINING_SET,
            SET,
            Column("other_dataset", "string", "the set it is compared with"),
            MEASURE,
            Column("n_models", "int64", "models ranked on both", "models"),
            *_interval("tau_b", "Kendall tau-b of the models' scores on the two sets", "examples of each set"),
        ),
        ("collection", "training_set", "dataset", "other_dataset", "measure"),
    ),
    Table(
        "collected_penalty_cells",
        (
            COLLECTION,
            TRAINING_SET,
            MODEL,
            SET,
            MEASURE,
            RELATION,
            Column("mean_score", "float64", "mean over model seeds", "share"),
            Column(
                "residual_log_odds",
                "float64",
                "log-odds of the score less the effects of set and model; null: in the loop, so kept out",
                "log-odds",
                True,
            ),
        ),
        ("collection", "training_set", "dataset", "measure", "evaluated_model"),
    ),
    Table(
        "collected_penalty",
        (
            COLLECTION,
            TRAINING_SET,
            MEASURE,
            RELATION,
            Column("n_cells", "int64", "model and set pairs of this relation", "cells"),
            *_interval("penalty_log_odds", "mean residual of these cells", "examples of each set", "log-odds"),
        ),
        ("collection", "training_set", "measure", "relation"),
    ),
    Table(
        "cross_training",
        (
            COLLECTION,
            MODEL,
            TRAINING_SET,
            SET,
            MEASURE,
            Column("n_train", "int64", "training examples", "examples"),
            Column("n_seeds", "int64", "fine-tuning seeds", "seeds"),
            Column("mean_score", "float64", "mean over seeds", "share"),
            Column(
                "score_sd",
                "float64",
                "sample standard deviation over seeds; null: fewer than two",
                "share",
                nullable=True,
            ),
            Column("best", "bool", "no other training set gives this model a higher mean on this set"),
        ),
        ("collection", "evaluated_model", "training_set", "dataset", "measure"),
    ),
    Table(
        "model_in_the_loop",
        (
            COLLECTION,
            TRAINING_SET,
            MODEL,
            SET,
            Column(
                "how",
                "string",
                "`by_selection`: examples that the instance of seed `loop_seed` gets wrong; `by_people`: a set that"
                " people wrote against a model of this base; `full_set`: all examples, to compare with",
            ),
            Column("loop_seed", "int64", "seed of the instance that the examples were selected against", nullable=True),
            Column("model_seed", "int64", "fine-tuning seed of the instance that is scored"),
            MEASURE,
            IN_THE_LOOP,
            Column("n_examples", "int64", "examples", "examples"),
            Column("mean_score", "float64", "mean score; null: no examples", "share", True),
        ),
        ("collection", "training_set", "evaluated_model", "dataset", "how", "loop_seed", "model_seed", "measure"),
    ),
    Table(
        "question_statistics",
        (
            COLLECTION,
            SET,
            Column("split", "string", "`train`, `validation` or `test`"),
            Column("n_documents", "int64", "documents", "documents"),
            Column("n_passages", "int64", "passages", "passages"),
            Column("n_questions", "int64", "questions", "questions"),
            Column("question_words_mean", "float64", "length of a question", "words", True),
            Column("question_words_sd", "float64", "its sample standard deviation", "words", True),
            Column(
                "answer_words_mean",
                "float64",
                "length of an answer, mean over a question's gold answers",
                "words",
                True,
            ),
            Column("answer_words_sd", "float64", "its sample standard deviation", "words", True),
            Column("overlap_mean", "float64", "longest n-gram that question and passage share", "words", True),
            Column("overlap_sd", "float64", "its sample standard deviation", "words", True),
        ),
        ("collection", "dataset", "split"),
    ),
    Table(
        "question_overlap",
        (
            COLLECTION,
            SET,
            Column("split", "string", "`train`, `validation` or `test`"),
            Column("overlap", "int64", "longest n-gram that question and passage share", "words"),
            Column("n_questions", "int64", "questions with it", "questions"),
            Column("share", "float64", "of the split's questions", "share"),
        ),
        ("collection", "dataset", "split", "overlap"),
    ),
    Table(
        "question_kinds",
        (
            COLLECTION,
            SET,
            Column("split", "string", "`train`, `validation` or `test`"),
            Column("aspect", "string", "`question_word` or `answer_type`"),
            Column("kind", "string", "e.g. `what`, `how many`; `number`, `date`, `other`"),
            Column("n_questions", "int64", "questions of this kind", "questions"),
            Column("share", "float64", "of the split's questions", "share"),
        ),
        ("collection", "dataset", "split", "aspect", "kind"),
    ),
]
