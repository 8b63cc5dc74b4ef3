"""Label names and what annotators make of them.

Conventions
-----------
Labels are strings in every table; `label_order` is the stored order in which `label_count`
(integers) and probabilities are written. For multiple choice the label is the index of the
right candidate as a string, "0", "1", ….
`label_count` may be longer than `label_order`: counts of `other_labels` (given by annotators,
but no class of the task) follow. `agreement` and entropy are over all annotators; a distribution
that is compared with a model's probabilities is the leading part, renormalised over the classes.
`agreement` is the share of annotators with the gold label, `label_entropy_bits` the entropy
of the label distribution in bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advsets.errors import UserError, allowed

NO_GOLD = ("-", "-1", "", "null", "none", "nan")
"""Raw values (lower case) that mean an example has no gold label; such rows are dropped and counted."""


def map_label(raw: object, mapping: Mapping[str, str], where: str) -> str | None:
    """Label name of a raw value, or None when the row has no gold label.

    Parameters
    ----------
    raw : object
        Value as read. Floats without a fraction are compared as integers; true as "True",
        "true" and "1", false likewise.
    mapping : mapping of str to str
        Raw value, written as a string, to label name.
    where : str
        File and row for the message.

    Raises
    ------
    UserError
        If the value is neither in the mapping nor one of `NO_GOLD`.
    """
    if raw is None:
        return None
    if isinstance(raw, float) and math.isfinite(raw) and raw == int(raw):
        raw = int(raw)
    text = str(raw).strip()
    spellings = (text, text.lower(), str(int(raw))) if isinstance(raw, bool) else (text,)
    for spelling in spellings:
        if spelling in mapping:
            return mapping[spelling]
    if text.lower() in NO_GOLD:
        return None
    raise UserError(
        f"{where}: label {text!r} is not in the mapping; allowed: {allowed(mapping)};"
        " add it to `labels` of the data set, or mend the row"
    )


def agreement(label_count: Sequence[int], label: str, label_order: Sequence[str]) -> float:
    """Share of annotators (0-1) whose label is the gold label; ValueError without annotators."""
    return label_count[label_order.index(label)] / _n_annotators(label_count)


def entropy_bits(label_count: Sequence[int]) -> float:
    """Entropy of a label distribution, in bits; ValueError without annotators."""
    total = _n_annotators(label_count)
    return -sum(c / total * math.log2(c / total) for c in label_count if c > 0) + 0.0


def modal_label(label_count: Sequence[int], label_order: Sequence[str]) -> str | None:
    """Most frequent label, or None when two or more are tied for it or nobody gave one.

    `label_order` names every entry of `label_count`, those of `other_labels` included.
    """
    top = max(label_count, default=0)
    if top == 0 or list(label_count).count(top) != 1:
        return None
    return label_order[list(label_count).index(top)]


def _n_annotators(label_count: Sequence[int]) -> int:
    total = sum(label_count)
    if total == 0:
        raise ValueError("no annotator gave a label: agreement and entropy are unknown, not 0")
    return total
