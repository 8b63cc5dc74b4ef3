"""What a table is, and columns that several share."""

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


ID = Column("example_id", "string", "identifier, unique within a data set")
DATASET = Column("dataset", "string", "row name in the data sets table")
ADVERSARY = Column("adversary", "string", "model whose representation decided what is kept")
ADVERSARY_SEED = Column("adversary_seed", "int64", "fine-tuning seed of the adversary")
NULL_ADVERSARY = Column("adversary", "string", "adversary that made or sized the subset; null: full set", nullable=True)
NULL_ADVERSARY_SEED = Column("adversary_seed", "int64", "its fine-tuning seed; null: full set", nullable=True)
EVALUATED_MODEL = Column("evaluated_model", "string", "model whose score is reported")
MODEL_SEED = Column("model_seed", "int64", "fine-tuning seed of the evaluated model")
SUBSET = Column("subset", "string", "`full_set`, `filtered` or `random_subset` (size-matched control)")
SPLIT = Column("split", "string", "`train` or `evaluation`")
ROUND = Column("filtering_round", "int64", "filtering round, from 1")
PREDICTABILITY = Column(
    "predictability",
    "float64",
    "correct share of the classifiers that held the row out; null: never held out",
    "share",
    True,
)
MARGIN = Column(
    "margin",
    "float64",
    "mean over held-out classifiers of true-class minus best other score; null: never held out, or its class has left",
    "logit",
    True,
)
REMOVED_IN = Column("removed_in_round", "int64", "round that removed the row; null if retained", nullable=True)
N_HELD_OUT = Column("n_held_out", "int64", "classifiers that did not train on the row", "classifiers")
N_CORRECT = Column("n_correct", "int64", "of these, how many predicted it right", "classifiers")

ACCURACY = (
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

WEIGHTING = Column("weighting", "string", "`full_set`, `retained`, `matched` or `agreement_weighted`")
METHOD = Column(
    "method",
    "string",
    "`full_set`, `single_adversary`, `weighted`, `weighted_by_family`, `mean_rank` or `bradley_terry`",
)
USED_ADVERSARY = Column("adversary", "string", "of method `single_adversary`; null: all adversaries", nullable=True)
USED_ADVERSARY_SEED = Column("adversary_seed", "int64", "its fine-tuning seed; null: all", nullable=True)
SUMMARY = (
    Column("accuracy_mean", "float64", "mean accuracy of the evaluated models", "share", True),
    Column("accuracy_mean_low", "float64", "bootstrap bound over examples", "share", True),
    Column("accuracy_mean_high", "float64", "bootstrap bound over examples", "share", True),
    Column("tau_b", "float64", "Kendall tau-b of model accuracies with those on the full set", nullable=True),
    Column("tau_b_low", "float64", "bootstrap bound over examples", nullable=True),
    Column("tau_b_high", "float64", "bootstrap bound over examples", nullable=True),
    Column("rank_change_mean", "float64", "mean absolute change of rank from the full set", "ranks", True),
)


def soft_score(name: str, meaning: str, unit: str) -> tuple[Column, Column, Column]:
    """A mean over examples and model seeds with its interval; null where there are no examples."""
    return (
        Column(name, "float64", f"{meaning}, mean; `random_subset`: mean over draws", unit, True),
        Column(f"{name}_low", "float64", "bootstrap bound over examples; `random_subset`: lowest draw", unit, True),
        Column(f"{name}_high", "float64", "bootstrap bound over examples; `random_subset`: highest draw", unit, True),
    )
