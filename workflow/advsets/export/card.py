"""Card of a filtered set: what it is, how it was made, what it must not be used for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import yaml

from advsets.export.adversary import COMBINATIONS, Adversary, listed, side_by_side, source_record
from advsets.registry import DatasetRow
from advsets.tables import TABLES

_HUB_LICENCES = frozenset(
    (
        *("mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "gpl-3.0", "lgpl-3.0", "agpl-3.0", "mpl-2.0", "afl-3.0"),
        *("unlicense", "odbl", "odc-by", "pddl", "cc0-1.0", "cc-by-2.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0"),
        *("cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-4.0"),
    )
)
"""Identifiers of the hub's list of licences that data sets commonly have; others become `other`."""
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
_EMPTY = "**This set is empty: the filter removed every example.** `load_dataset` cannot read a split without examples."


@dataclass(frozen=True)
class CardFacts:
    """What the card is written from.

    `rows` is the full evaluation set with the filter's decisions, `columns` those of the data
    file, `agreement` the rows of this adversary and seed (None: not measured), `source` the record
    of the fetched data set (source.json).
    """

    dataset: DatasetRow
    adversary: Adversary
    label_names: Sequence[str]
    rows: pl.DataFrame
    columns: Sequence[str]
    agreement: pl.DataFrame | None
    settings: dict[str, Any]
    source: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{self.dataset.title}, filtered by {self.adversary.title}"


def card_text(facts: CardFacts) -> str:
    """README.md of the folder: front matter for the hub, then the card."""
    front = yaml.safe_dump(_front_matter(facts), sort_keys=False, allow_unicode=True, width=100)
    parts = (_opening, _loading, _sizes, _agreement, _adversary, _filter, _source, _column_meanings)
    return f"---\n{front}---\n\n" + "\n".join(part(facts).rstrip() + "\n" for part in parts)


def _front_matter(facts: CardFacts) -> dict[str, Any]:
    split = facts.dataset.evaluation_split
    kept = int(facts.rows["retained"].sum())
    return {
        "pretty_name": facts.title,
        "language": [facts.dataset.language],
        **_licence(facts.dataset.licence),
        "task_categories": ["multiple-choice" if facts.dataset.is_multiple_choice else "text-classification"],
        "size_categories": [next((name for limit, name in _SIZES if kept < limit), "1M<n<10M")],
        "tags": ["adversarial-filtering", "aflite", "advsets"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"data/{split}-00000-of-00001.parquet"}],
            }
        ],
    }


def _licence(licence: str) -> dict[str, str]:
    identifier = "-".join(licence.lower().split())
    return {"license": identifier} if identifier in _HUB_LICENCES else {"license": "other", "license_name": licence}


def _opening(facts: CardFacts) -> str:
    kept, total = int(facts.rows["retained"].sum()), len(facts.rows)
    what = _filled(
        f"A harder evaluation set, made by adversarial filtering (AFLite): of the {total:,} examples of the"
        f" evaluation set of *{facts.dataset.title}*, the {kept:,} are kept that linear classifiers on"
        f" {_representations(facts.adversary)} do not predict reliably."
    )
    empty = "" if kept else f"{_filled(_EMPTY, '> ')}\n>\n"
    return f"# {facts.title}\n\n{what}\n\n> [!WARNING]\n{empty}{_filled(_warning(facts.adversary), '> ')}"


def _representations(adversary: Adversary) -> str:
    if not adversary.is_ensemble:
        return f"the representation of the adversary, {adversary.emphasised},"
    return (
        f"the representations of {len(adversary.members)} adversaries ({adversary.emphasised}; together the ensemble"
        f" `{adversary.name}`, by the {adversary.combination} of their scores)"
    )


def _warning(adversary: Adversary) -> str:
    several = adversary.is_ensemble
    built = listed(member.title for member in adversary.members)
    return (
        f"**This set is not fair to every model.** It was built against {built}. Models fine-tuned from"
        f" the same base {'models' if several else 'model'}, and to a lesser degree models of the same"
        f" {'families' if ',' in adversary.families else 'family'} ({adversary.families}),"
        " are at a disadvantage on it: their accuracy here understates them. Do not rank them against other"
        f" models on this set, and do not use {_own_accuracy(several)} as a measure of its difficulty."
        " Filtering also **oversamples examples on which annotators agree little**, so errors here may be"
        " contested labels; see the agreement before and after below. Report accuracy on the full"
        " evaluation set, and on random subsets of the same size, beside accuracy on this one."
    )


def _own_accuracy(several: bool) -> str:
    return "any adversary's own accuracy" if several else "the adversary's own accuracy"


def _filled(text: str, prefix: str = "") -> str:
    return textwrap.fill(
        text, 100, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False, break_long_words=False
    )


def _loading(facts: CardFacts) -> str:
    split = facts.dataset.evaluation_split
    label = (
        "`label` is the index of the right candidate in `candidates`."
        if facts.dataset.is_multiple_choice
        else "`label` is a `ClassLabel` with the names "
        + ", ".join(f"{i} = `{name}`" for i, name in enumerate(facts.label_names))
        + "."
    )
    return f"""## How to load

```python
from datasets import load_dataset

examples = load_dataset("path/to/this/folder", split="{split}")
```

{label}

To score predictions (a CSV file with `example_id` and `predicted_label`, the label's name, over the
full evaluation set) on the full set, on this subset and on random subsets of its size:

```
advsets evaluate predictions.csv --set path/to/this/folder
```

`retained.parquet` holds the filter's decision on every row of the full evaluation set and
`evaluation_labels.parquet` their gold labels; `load_dataset` reads neither."""


def _sizes(facts: CardFacts) -> str:
    rows = []
    for name, part in [(n, facts.rows.filter(pl.col("label") == n)) for n in facts.label_names] + [("all", facts.rows)]:
        kept = int(part["retained"].sum())
        rows.append([name, f"{len(part):,}", f"{kept:,}", f"{100 * kept / len(part):.1f} %" if len(part) else "–"])
    gone = facts.rows["removed_in_round"].drop_nulls().value_counts().sort("removed_in_round").rows()
    by_round = ", ".join(f"{number}: {n:,}" for number, n in gone) or "none"
    return f"""## Sizes

{_table(["label", "before", "after", "retained"], rows)}

Examples removed by filtering round: {by_round}."""


def _agreement(facts: CardFacts) -> str:
    title = "## Annotator agreement before and after\n\n"
    if facts.agreement is None:
        return title + "Not measured."
    measures = [
        ("agreement with the gold label", "agreement_mean", "agreement_low", "agreement_high", "n_examples"),
        ("entropy of the labels (bits)", "label_entropy_bits_mean", None, None, "n_examples"),
        ("flagged for low agreement", "low_agreement_share", "low_agreement_low", "low_agreement_high", "n_flagged"),
    ]
    rows = []
    for measure, mean, low, high, n in measures:
        for gold in [None, *facts.label_names]:
            part = facts.agreement.filter(pl.col("gold_label").eq_missing(gold))
            before, after = (part.filter(pl.col("subset") == s) for s in ("full_set", "retained"))
            if len(before) and before[mean][0] is not None:
                cells = [_measured(side, mean, low, high, n) for side in (before, after)]
                rows.append([measure, gold or "all", *cells])
    if not rows:
        return title + "The data set has no annotator labels, so it is not known."
    note = "Means over examples; in brackets the bootstrap interval, and the number of examples that have the measure."
    return title + _table(["measure", "gold label", "full set", "retained"], rows) + "\n\n" + note


def _measured(rows: pl.DataFrame, mean: str, low: str | None, high: str | None, n: str) -> str:
    if not len(rows) or rows[mean][0] is None:
        return "–"
    interval = (
        "" if low is None or high is None or rows[low][0] is None else f"{rows[low][0]:.3f} to {rows[high][0]:.3f}, "
    )
    return f"{rows[mean][0]:.3f} ({interval}n = {rows[n][0]:,})"


def _adversary(facts: CardFacts) -> str:
    members, several = facts.adversary.members, facts.adversary.is_ensemble
    header = [_cell(member.title) for member in members] if several else ["value"]
    common = {key: value for key, value in facts.settings.items() if key != "filter"}
    tuning = side_by_side([{**common, **member.fine_tune} for member in members])
    return f"""## {"Adversaries" if several else "Adversary"}

{_table(["", *header], side_by_side([member.described() for member in members]))}

{_tuned(several)}

{_table(["setting", *header], tuning)}"""


def _tuned(several: bool) -> str:
    each = "Each fine-tuned" if several else "Fine-tuned"
    return f"{each} on the share of the training rows that was kept out of filtering, with these settings:"


def _filter(facts: CardFacts) -> str:
    return f"""## Filter

Modified AFLite (Phang et al. 2021): in every round `n_partitions` logistic regressions are fitted on
random subsets of the training rows and predict the evaluation rows, which take no part in any fit. An
evaluation row is removed when the share of them that is right passes `threshold` (with
`target_size`: the rows predicted best go until that many are left). `train_size`, `slice_size` and
`min_retained` below 1 are shares of the training rows, from 1 up counts; none for `min_retained`
means `train_size` / 0.8.
{_combined(facts.adversary)}
{_table(["parameter", "value"], _filter_settings(facts).items())}"""


def _combined(adversary: Adversary) -> str:
    """Paragraph on how the scores of several adversaries became one."""
    if not adversary.is_ensemble:
        return ""
    text = (
        f"Of each adversary there are `n_partitions` classifiers, on the same subsets. With the combination"
        f" `{adversary.combination}` {COMBINATIONS[adversary.combination]}."
    )
    return f"\n{_filled(text)}\n"


def _filter_settings(facts: CardFacts) -> dict[str, Any]:
    adversary, settings = facts.adversary, facts.settings.get("filter", {})
    if not adversary.is_ensemble:
        return settings
    names = ", ".join(member.model.name for member in adversary.members)
    return {"adversaries": names, "combination": adversary.combination, **settings}


def _source(facts: CardFacts) -> str:
    row = facts.dataset
    described = {
        "homepage": row.homepage or "not stated",
        "licence": row.licence,
        "language": row.language,
        **source_record(facts.source, "requested"),
    }
    citation = f"\n~~~~\n{row.citation.strip()}\n~~~~\n" if row.citation.strip() else "\nNo citation is given.\n"
    return f"""## Source data

{_table(["", "value"], described.items())}

Cite the source:
{citation}
and for the method: Phang, Chen, Huang and Bowman (2021), *Adversarially Constructed Evaluation Sets
Are More Challenging, but May Not Be Fair*; Le Bras et al. (2020), *Adversarial Filters of Dataset
Biases*."""


def _column_meanings(facts: CardFacts) -> str:
    meanings = {c.name: c.meaning for name in ("retained", "examples") for c in TABLES[name].columns}
    rows = [[f"`{name}`", meanings[name]] for name in facts.columns]
    order = [*facts.dataset.label_order, *facts.dataset.other_labels]
    note = f"\n\nLabel order of `label_count`: {', '.join(order)}." if "label_count" in facts.columns else ""
    return f"""## Columns

{_table(["column", "meaning"], rows)}{note}"""


def _table(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_cell(item)}" for key, item in value.items())
    return " ".join(str(value).split()).replace("|", "\\|")
