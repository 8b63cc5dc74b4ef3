"""Split questions in two halves, each document in both as far as whole passages allow.

Conventions
-----------
How a document's passages part hangs on nothing but these: one part gets as near to half of the
questions as whole passages allow, taken in the order of a keyed hash. Which half gets the larger
part is decided document by document, largest difference first, so that the halves stay as equal
as they can; a document of one passage goes whole to the half that is smaller then.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from advsets.seeding import uniform_for

HALVES = ("validation", "test")


def half_of_each(questions: pl.DataFrame) -> pl.Series:
    """`validation` or `test` for each row of table `questions`, shape (n_questions,).

    A passage that stands in several documents counts for the first of them by name.
    """
    passages = questions.group_by("passage_id").agg(pl.col("document_id").min(), pl.len().alias("n"))
    draw = pl.Series("draw", uniform_for(passages["passage_id"].to_list(), 0, "passage in halves"))
    ordered = passages.with_columns(draw).sort("document_id", "draw", "passage_id")
    documents = ordered.group_by("document_id", maintain_order=True).agg("passage_id", "n")
    parted = [
        (document, *_parted(ids, sizes))
        for document, ids, sizes in zip(*(documents[name].to_list() for name in documents.columns), strict=True)
    ]
    sides = uniform_for([document for document, *_ in parted], 0, "document in halves") < 0.5
    half: dict[str, str] = {}
    gap = 0  # validation questions less test questions, so far
    for (_, smaller, larger, more), side in sorted(zip(parted, sides, strict=True), key=lambda p: (-p[0][3], p[0][0])):
        larger_first = gap < 0 or (gap == 0 and side)
        gap += more if larger_first else -more
        for part, first in ((larger, larger_first), (smaller, not larger_first)):
            half |= dict.fromkeys(part, HALVES[0 if first else 1])
    return questions["passage_id"].replace_strict(half, return_dtype=pl.String).alias("split")


def _parted(ids: Sequence[str], sizes: Sequence[int]) -> tuple[list[str], list[str], int]:
    """Smaller and larger part of a document's passages, and by how many questions they differ.

    `reachable[k]` has bit s set where some of the first k passages have s questions together.
    """
    reachable = [1]
    for size in sizes:
        reachable.append(reachable[-1] | reachable[-1] << size)
    total = sum(sizes)
    wanted = next(s for s in range(total // 2, -1, -1) if reachable[-1] >> s & 1)
    taken, left = set(), wanted
    for k in range(len(sizes) - 1, -1, -1):
        if not reachable[k] >> left & 1:
            taken.add(ids[k])
            left -= sizes[k]
    parts = [[key for key in ids if (key in taken) is inside] for inside in (True, False)]
    return parts[0], parts[1], total - 2 * wanted
