"""Tokenise ahead, and cut batches whose make-up depends on ids and a key, not on row order.

Conventions
-----------
Examples are put in the order of `example_id` first. Sequences of one example stand next to
each other: example i has sequences `offsets[i]` to `offsets[i + 1]`, sequence j has tokens
`starts[j]` to `starts[j + 1]` of the flat arrays. Batches are padded on the right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from advsets.errors import UserError
from advsets.models import ranks
from advsets.registry import MULTIPLE_CHOICE
from advsets.seeding import id_hashes, mix, rng_for

if TYPE_CHECKING:
    import polars as pl

_TOKENISE_ROWS = 10_000
_GROUPED_BATCHES = 50
"""Batches sorted by length together, as many as transformers' Trainer takes: 2 % of padding where 16 leave 8 %."""


@dataclass(frozen=True)
class Tokenised:
    """Tokens of a set of examples, in the order of `example_id`."""

    example_ids: list[str]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    tokens: NDArray[np.int32]
    types: NDArray[np.int32] | None
    pad_id: int
    pad_type: int
    n_truncated: int

    @property
    def sequence_lengths(self) -> NDArray[np.int64]:
        """Tokens per sequence, shape (n_sequences,)."""
        return np.diff(self.starts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of the longest sequence per example, shape (n_examples,)."""
        if len(self.example_ids) == 0:
            return np.zeros(0, np.int64)
        return np.maximum.reduceat(self.sequence_lengths, self.offsets[:-1])

    @property
    def counts(self) -> NDArray[np.int64]:
        """Sequences per example, shape (n_examples,)."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Batch:
    """Padded tensors of some examples: `rows` are their positions, `counts` their sequences."""

    rows: NDArray[np.int64]
    inputs: dict[str, torch.Tensor]
    counts: torch.Tensor


def tokenise(examples: pl.DataFrame, tokenizer: Any, task: str, max_length: int) -> Tokenised:
    """Tokenise examples, sorted by `example_id`; how many were truncated is counted.

    Raises
    ------
    UserError
        If an id occurs twice, or a multiple-choice example has fewer than two candidates.
    """
    os.environ.setdefault("RAYON_NUM_THREADS", str(torch.get_num_threads()))
    examples = examples.sort("example_id")
    ids = examples["example_id"].to_list()
    require_unique(ids)
    first, second, counts = _texts(examples, task)
    truncated = np.zeros(len(first), bool)
    lists: list[list[int]] = [[] for _ in first]
    types: list[list[int]] = [[] for _ in first]
    for rows in _runs(second):
        _encode(tokenizer, first, second, rows, max_length, lists, types, truncated)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    hit = np.add.reduceat(truncated, offsets[:-1]) > 0 if ids else truncated
    has_types = "token_type_ids" in tokenizer.model_input_names
    return Tokenised(
        ids,
        offsets,
        np.concatenate([[0], np.cumsum([len(t) for t in lists])]).astype(np.int64),
        _flat(lists),
        _flat(types) if has_types else None,
        tokenizer.pad_token_id or 0,
        tokenizer.pad_token_type_id,
        int(hit.sum()),
    )


def report_truncated(tokenised: Tokenised, max_length: int, what: str) -> None:
    """Say on stderr how many examples lost tokens."""
    share = tokenised.n_truncated / max(1, len(tokenised.example_ids))
    ranks.tell(
        f"{what}: {tokenised.n_truncated} of {len(tokenised.example_ids)} examples ({share:.1%})"
        f" truncated to {max_length} tokens"
    )


def require_unique(ids: list[str], table: str = "examples") -> None:
    """Raise `UserError` if an id of `ids`, which are sorted, occurs twice."""
    for before, after in zip(ids, ids[1:], strict=False):
        if before == after:
            raise UserError(f"{table}: example_id {after!r} occurs twice; ids must be unique; rename or drop one row")


def _texts(examples: pl.DataFrame, task: str) -> tuple[list[str], list[str | None], list[int]]:
    """First and second text of every sequence, and the number of sequences per example."""
    text_a, text_b = examples["text_a"].to_list(), examples["text_b"].to_list()
    if task != MULTIPLE_CHOICE:
        return text_a, text_b, [1] * len(text_a)
    candidates = examples["candidates"].to_list()
    for example_id, answers in zip(examples["example_id"], candidates, strict=True):
        if answers is None or len(answers) < 2:
            found = 0 if answers is None else len(answers)
            raise UserError(
                f"examples: {example_id!r} has {found} candidates; multiple choice needs at least 2;"
                " add them or drop the row"
            )
    contexts = [a if b is None else f"{a} {b}" for a, b in zip(text_a, text_b, strict=True)]
    first = [context for context, answers in zip(contexts, candidates, strict=True) for _ in answers]
    return first, [answer for answers in candidates for answer in answers], [len(a) for a in candidates]


def _runs(second: list[str | None]) -> Iterator[list[int]]:
    """Rows to encode in one call: single texts apart from pairs."""
    for rows in (
        [i for i, text in enumerate(second) if text is None],
        [i for i, text in enumerate(second) if text is not None],
    ):
        for start in range(0, len(rows), _TOKENISE_ROWS):
            yield rows[start : start + _TOKENISE_ROWS]


def _encode(
    tokenizer: Any,
    first: list[str],
    second: list[str | None],
    rows: list[int],
    max_length: int,
    lists: list[list[int]],
    types: list[list[int]],
    truncated: NDArray[np.bool_],
) -> None:
    """Fill `lists`, `types` and `truncated` for `rows`."""
    pair = None if second[rows[0]] is None else [second[i] for i in rows]
    texts = [first[i] for i in rows]
    encoded = tokenizer(texts, text_pair=pair, truncation=True, max_length=max_length, return_attention_mask=False)
    if tokenizer.is_fast:
        cut = [bool(e.overflowing) for e in encoded.encodings]
    else:
        whole = tokenizer(texts, text_pair=pair, return_attention_mask=False, verbose=False)["input_ids"]
        cut = [len(ids) > max_length for ids in whole]
    kinds = encoded.get("token_type_ids") or [[0] * len(ids) for ids in encoded["input_ids"]]
    for k, i in enumerate(rows):
        lists[i], types[i], truncated[i] = encoded["input_ids"][k], kinds[k], cut[k]


def _flat(lists: list[list[int]]) -> NDArray[np.int32]:
    return np.fromiter((value for values in lists for value in values), np.int32, sum(len(v) for v in lists))


def collate(tokenised: Tokenised, rows: NDArray[np.int64], device: torch.device | str) -> Batch:
    """Tensors of the examples at `rows`, padded to the longest of their sequences."""
    real, flat = cells(tokenised, rows)
    inputs = {"input_ids": _padded(tokenised.tokens[flat], real, tokenised.pad_id)}
    if tokenised.types is not None:
        inputs["token_type_ids"] = _padded(tokenised.types[flat], real, tokenised.pad_type)
    inputs["attention_mask"] = torch.from_numpy(real.astype(np.int64))
    return Batch(
        rows,
        {name: tensor.to(device, non_blocking=True) for name, tensor in inputs.items()},
        torch.from_numpy(tokenised.counts[rows]).to(device),
    )


def cells(tokenised: Tokenised, rows: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which cells of the padded sequences of `rows` hold a token, and the tokens' positions in the flat arrays.

    Returns
    -------
    array of bool, shape (n_sequences, length), and array of int, shape (n_tokens,)
        `padded[real] = values[flat]` fills in the values of all tokens.
    """
    sequences = np.concatenate([np.arange(tokenised.offsets[r], tokenised.offsets[r + 1]) for r in rows])
    lengths = tokenised.sequence_lengths[sequences]
    real = np.arange(int(lengths.max())) < lengths[:, None]
    return real, np.concatenate([np.arange(tokenised.starts[s], tokenised.starts[s + 1]) for s in sequences])


def _padded(values: NDArray[np.int32], real: NDArray[np.bool_], pad: int) -> torch.Tensor:
    out = np.full(real.shape, pad, np.int64)
    out[real] = values
    return torch.from_numpy(out)


def training_batches(
    tokenised: Tokenised, rows: NDArray[np.int64], batch_size: int, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Length-grouped batches of one epoch, keyed by seed, epoch and ids.

    Rows are shuffled, each run of `50 * batch_size` is sorted by length and cut into batches,
    and the batches are shuffled.
    """
    ids = [tokenised.example_ids[r] for r in rows]
    shuffled = rows[np.argsort(mix(id_hashes(ids), seed, "epoch", epoch), kind="stable")]
    lengths = tokenised.lengths
    batches = []
    for start in range(0, len(shuffled), batch_size * _GROUPED_BATCHES):
        run = shuffled[start : start + batch_size * _GROUPED_BATCHES]
        run = run[np.argsort(lengths[run], kind="stable")]
        batches += [run[i : i + batch_size] for i in range(0, len(run), batch_size)]
    order = rng_for(seed, "batches", epoch).permutation(len(batches))
    return [batches[i] for i in order]


def inference_batches(
    tokenised: Tokenised, rows: NDArray[np.int64], tokens_per_batch: int
) -> Iterator[NDArray[np.int64]]:
    """Batches of at most `tokens_per_batch` padded tokens (one example at least), longest first."""
    lengths, counts = tokenised.lengths, tokenised.counts
    ordered = rows[np.argsort(-lengths[rows], kind="stable")]
    start, sequences = 0, 0
    for stop, row in enumerate(ordered):
        if stop > start and (sequences + counts[row]) * lengths[ordered[start]] > tokens_per_batch:
            yield ordered[start:stop]
            start, sequences = stop, 0
        sequences += counts[row]
    if start < len(ordered):
        yield ordered[start:]
