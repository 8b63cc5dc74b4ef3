"""Keyed randomness: what is drawn depends on the key alone, never on order, batch or device.

Conventions
-----------
A key is a tuple of strings and integers (NumPy's count as Python's). It is hashed with BLAKE2b to seed a counter-based
generator, or mixed into one 64-bit hash per `example_id` (SplitMix64 finaliser).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def key_hash(*key: str | int) -> int:
    """64-bit hash of a key; ("a", 1) and ("a", "1") differ.

    Raises
    ------
    TypeError
        If a part is neither string nor integer (bool included): its hash could change unseen.
    """
    digest = blake2b(digest_size=8)
    for part in key:
        if isinstance(part, bool) or not isinstance(part, (str, Integral)):
            raise TypeError(f"key part {part!r} is a {type(part).__name__}; allowed: str and int")
        text = f"str:{part}" if isinstance(part, str) else f"int:{int(part)}"
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return int.from_bytes(digest.digest(), "little")


def rng_for(seed: int, *key: str | int) -> np.random.Generator:
    """Counter-based generator for one purpose, e.g. `rng_for(0, example_id, "bootstrap")`."""
    return np.random.Generator(np.random.Philox(key=key_hash(int(seed), *key)))


def seed_for(seed: int, *key: str | int) -> int:
    """Seed below 2**31 for libraries that take one, such as torch."""
    return key_hash(int(seed), *key) % (2**31)


def id_hashes(ids: Sequence[str]) -> NDArray[np.uint64]:
    """64-bit hash of each id, shape (n_ids,)."""
    out = np.fromiter(
        (int.from_bytes(blake2b(i.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") for i in ids),
        dtype=np.uint64,
        count=len(ids),
    )
    return out


def mix(hashes: NDArray[np.uint64], *key: str | int) -> NDArray[np.uint64]:
    """Fresh pseudo-random 64-bit value per hash for this key, same shape as `hashes`."""
    with np.errstate(over="ignore"):
        z = hashes ^ np.uint64(key_hash(*key))
        z = z + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return z ^ (z >> np.uint64(31))


def uniform_for(ids: Sequence[str], seed: int, *key: str | int) -> NDArray[np.float64]:
    """One number in [0, 1) per id, shape (n_ids,), the same whatever ids stand beside it."""
    return (mix(id_hashes(ids), int(seed), *key) >> np.uint64(11)).astype(np.float64) / 2.0**53
