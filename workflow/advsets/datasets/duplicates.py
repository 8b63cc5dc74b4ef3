"""Which examples have equal texts, and ids made from texts.

Conventions
-----------
Texts are equal when they are after case folding and squeezing white space, all of them (both
texts and the candidates in order). A text key is a hash of that, 16 hexadecimal digits.
"""

from __future__ import annotations

from hashlib import blake2b

import polars as pl

from advsets.errors import UserError, allowed


def text_keys(frame: pl.DataFrame) -> pl.Series:
    """Text key of every row, shape (n_rows,)."""
    rows = zip(frame["text_a"], frame["text_b"], frame["candidates"], strict=True)
    keys = [text_key([a, b, *(list(c) if c is not None else [])]) for a, b, c in rows]
    return pl.Series("text_key", keys, dtype=pl.String)


def text_key(texts: list[str | None]) -> str:
    """Hash of texts in order, equal for equal texts."""
    digest = blake2b(digest_size=8)
    for text in texts:
        normalised = b"\xff" if text is None else " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
        digest.update(len(normalised).to_bytes(8, "little") + normalised)
    return digest.hexdigest()


def add_ids(frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with `example_id`: the id column's value, or the text key.

    Rows with one text key are numbered in the order of their content, evaluation rows first:
    the first has the key itself, the others `-1`, `-2`, …; so ids depend on no row order.

    Raises
    ------
    UserError
        If ids of a column are missing or occur twice, within a split or across both.
    """
    if frame["own_id"].null_count() < frame.height:
        return _own_ids(frame)
    content = ["text_a", "text_b", "label", "group_id", "source_id"]
    lists = [
        pl.col(c).cast(pl.List(pl.String)).list.join("\x1f", ignore_nulls=True) for c in ("candidates", "label_count")
    ]
    position = (
        frame.with_row_index("row")
        .with_columns(lists)
        .sort(["text_key", pl.col("split") == "train", *content, "candidates", "label_count", "low_agreement"])
        .with_columns(pl.int_range(pl.len()).over("text_key").alias("copy"))
        .sort("row")["copy"]
    )
    suffix = pl.when(position > 0).then(pl.format("-{}", position)).otherwise(pl.lit(""))
    return frame.with_columns((pl.col("text_key") + suffix).alias("example_id"))


def _own_ids(frame: pl.DataFrame) -> pl.DataFrame:
    missing = frame.filter(pl.col("own_id").is_null() | (pl.col("own_id") == ""))
    if missing.height:
        raise UserError(f"{missing['place'][0]}: the id is missing; fill it, or set `columns.example_id` to null")
    twice = frame.filter(pl.col("own_id").is_duplicated())
    if twice.height:
        names = twice["own_id"].unique().sort().to_list()
        first = twice.filter(pl.col("own_id") == names[0])
        across = "in train and evaluation" if first["split"].n_unique() > 1 else "twice"
        raise UserError(
            f"{first['place'][1]}: {len(names)} duplicate ids: {allowed(names, 5)}; id {names[0]!r} stands {across}"
            f" (also {first['place'][0]}); ids must be unique over both splits:"
            " mend them, or set `columns.example_id` to null (then a hash of the texts serves)"
        )
    return frame.with_columns(pl.col("own_id").alias("example_id"))
