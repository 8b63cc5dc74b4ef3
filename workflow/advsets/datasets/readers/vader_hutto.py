"""Sentiment ratings of Hutto and Gilbert (ICWSM 2014), shipped in the source archive of vaderSentiment.

Conventions
-----------
The inner archive holds, per part, `<part>_GroundTruth.txt` (id, mean rating, text) and
`<part>_anonDataRatings.txt` (id, mean, standard deviation, list of ratings from -4 to 4).
A rating below 0 is a vote for `negative`, 0 for `neutral`, above 0 for `positive`.
Ids such as `12_3` are sentence 3 of document 12; ids without `_` belong to no document.
"""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from advsets.datasets.raw import RawTable
from advsets.errors import UserError, allowed

PARTS = ("movieReviewSnippets", "tweets", "nytEditorialSnippets", "amazonReviewSnippets")
_INNER = "additional_resources/hutto_ICWSM_2014.tar.gz"
_FOLDER = "hutto_ICWSM_2014"


def read(archive: Path, options: dict[str, Any]) -> RawTable:
    """Table of one part: columns `id`, `document`, `text` and `votes`.

    Parameters
    ----------
    archive : Path
        Source archive (`.tar.gz`) of vaderSentiment.
    options : dict
        `part`: one of `PARTS`.

    Raises
    ------
    UserError
        If the part is unknown, a file is missing, or texts and ratings do not match.
    """
    part = _part(options)
    truth, ratings = _members(archive, [f"{part}_GroundTruth.txt", f"{part}_anonDataRatings.txt"])
    votes = {fields[0]: _votes(fields[3], where) for where, fields in _lines(ratings, f"{part}_anonDataRatings.txt", 4)}
    columns: dict[str, list[Any]] = {"id": [], "document": [], "text": [], "votes": []}
    for where, (identifier, _, text) in _lines(truth, f"{part}_GroundTruth.txt", 3):
        if identifier not in votes:
            raise UserError(f"{where}: id {identifier!r} has no ratings; fetch the archive again")
        columns["id"].append(identifier)
        columns["document"].append(identifier.split("_")[0] if "_" in identifier else None)
        columns["text"].append(text)
        columns["votes"].append(votes[identifier])
    n_rows = len(columns["id"])
    return RawTable(f"{archive}:{part}_GroundTruth.txt", columns, range(1, n_rows + 1), list(columns), "line")


def _part(options: dict[str, Any]) -> str:
    unknown = sorted(set(options) - {"part"})
    if unknown:
        raise UserError(f"reader vader_hutto: unknown option {unknown[0]!r}; allowed: part; remove it")
    part = options.get("part")
    if part not in PARTS:
        raise UserError(f"reader vader_hutto: part {part!r}; allowed: {allowed(PARTS)}; correct `source.options.part`")
    return str(part)


def _members(archive: Path, names: list[str]) -> list[str]:
    """Texts of files in the archive that lies inside the archive."""
    try:
        with tarfile.open(archive) as outer:
            inner_name = next((m for m in outer.getnames() if m.endswith(_INNER)), None)
            inner_file = outer.extractfile(inner_name) if inner_name else None
            if inner_file is None:
                raise UserError(f"{archive}: holds no {_INNER}; check package and version of the data set")
            with tarfile.open(fileobj=io.BytesIO(inner_file.read())) as inner:
                return [_text(inner, f"{_FOLDER}/{name}", archive) for name in names]
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise UserError(f"{archive}: not a readable tar archive ({error}); delete it and fetch again") from None


def _text(inner: tarfile.TarFile, name: str, archive: Path) -> str:
    member = inner.extractfile(name) if name in inner.getnames() else None
    if member is None:
        raise UserError(f"{archive}: holds no {name}; check package and version of the data set")
    return member.read().decode("utf-8-sig")


def _lines(text: str, name: str, n_fields: int) -> Iterator[tuple[str, list[str]]]:
    """Place and tab-separated fields of every line that is not empty."""
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.rstrip("\r").split("\t")
        if fields == [""]:
            continue
        if len(fields) != n_fields:
            raise UserError(
                f"{name}, line {number}: found {len(fields)} fields; allowed: {n_fields}; fetch the archive again"
            )
        yield f"{name}, line {number}", fields


def _votes(ratings: str, where: str) -> list[str]:
    try:
        values = [float(value) for value in json.loads(ratings)]
    except (ValueError, TypeError):
        raise UserError(
            f"{where}: ratings {ratings[:40]!r}; allowed: a list of numbers; fetch the archive again"
        ) from None
    return ["negative" if value < 0 else "positive" if value > 0 else "neutral" for value in values]
