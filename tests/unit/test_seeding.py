"""Keyed randomness is pinned: a changed number here changes every result of every user."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest

from advsets.seeding import id_hashes, key_hash, mix, rng_for, seed_for, uniform_for

# First output of SplitMix64 from state 0 (Steele, Lea and Flood 2014; the value in Java's and other test vectors).
SPLITMIX64_OF_0 = 0xE220A8397B1DCDAF


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ((), 0xB4B2797457A0A6E4),
        (("a", 1), 0x431F93B893C9B4AC),
        (("a", "1"), 0x8F332E3D758D6C01),
        ((0, "bootstrap", 3), 0xF9F848033D0C1EF),
        (("é",), 0xEDC431126D02E797),
    ],
)
def test_key_hash_is_pinned(key: tuple[str | int, ...], value: int) -> None:
    assert key_hash(*key) == value


def test_key_hash_is_blake2b_of_typed_length_prefixed_parts() -> None:
    text = b"\x05\0\0\0\0\0\0\0str:a" + b"\x05\0\0\0\0\0\0\0int:1"
    assert key_hash("a", 1) == int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def test_keys_differ_by_type_order_and_boundary() -> None:
    keys: list[tuple[str | int, ...]] = [
        ("a", 1),
        ("a", "1"),
        (1, "a"),
        ("a1",),
        ("a", 1, ""),
        ("", "a", 1),
        ("a", -1),
        ("int:1",),
        (1,),
    ]
    assert len({key_hash(*key) for key in keys}) == len(keys)


def test_numpy_parts_count_as_pythons() -> None:
    assert key_hash(np.str_("a"), np.int64(1)) == key_hash("a", np.uint8(1)) == key_hash("a", 1)  # type: ignore[arg-type]
    assert rng_for(np.int32(4), "x").random() == rng_for(4, "x").random()  # type: ignore[arg-type]


@pytest.mark.parametrize("part", [1.0, True, None, b"a", ("a",), np.float64(1), np.bool_(True)])
def test_other_parts_are_refused(part: object) -> None:
    with pytest.raises(TypeError, match="allowed: str and int"):
        key_hash("a", part)  # type: ignore[arg-type]


def test_ids_with_lone_surrogates_are_hashed() -> None:
    assert key_hash("\udc80") != key_hash("\udc81")
    assert len(set(id_hashes(["\udc80", "\udc81"]).tolist())) == 2


def test_id_hashes_are_pinned() -> None:
    hashes = id_hashes(["a", "b", "1_2", "ü"])
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [0x2F42665B399EF840, 0x754F854DE3C27284, 0x92134D2158974F68, 0x372F39C1F59DF155]
    assert id_hashes([]).shape == (0,)


def test_mix_is_pinned_and_is_splitmix64() -> None:
    hashes = id_hashes(["a", "b"])
    before = hashes.copy()
    assert mix(hashes, 0, "cap").tolist() == [0x45DBF2994AF6AD84, 0xB162288FD462F88A]
    assert (hashes == before).all()
    assert mix(np.array([key_hash("x")], dtype=np.uint64), "x").tolist() == [SPLITMIX64_OF_0]


def test_uniform_for_is_pinned() -> None:
    drawn = uniform_for(["a", "b", "c"], 7, "split")
    assert drawn.tolist() == [0.7195140650522359, 0.8397284815467934, 0.8301869959439746]


def test_rng_for_is_pinned() -> None:
    raw = rng_for(0, "e1", "bootstrap").bit_generator.random_raw(3)
    assert raw.tolist() == [0xFA7D61C60B795E30, 0x1203F12BED0F042C, 0x96D4CF36FE82F35F]
    assert rng_for(0, "e1", "bootstrap").integers(0, 1000, 5).tolist() == [44, 978, 926, 70, 994]
    assert rng_for(0, "e1", "bootstrap").permutation(8).tolist() == [7, 1, 2, 5, 3, 4, 6, 0]


def test_seed_for_is_pinned_and_fits_31_bits() -> None:
    assert (seed_for(3, "start"), seed_for(0, "start")) == (162304049, 184451822)
    assert all(0 <= seed_for(s, "start") < 2**31 for s in range(1000))


def test_numbers_do_not_depend_on_order_or_neighbours() -> None:
    ids = [f"e{i}" for i in range(500)]
    drawn = dict(zip(ids, uniform_for(ids, 1, "x"), strict=True))
    backwards = dict(zip(ids[::-1], uniform_for(ids[::-1], 1, "x"), strict=True))
    assert drawn == backwards
    assert uniform_for(["e77"], 1, "x")[0] == drawn["e77"]


def test_streams_do_not_depend_on_what_was_drawn_before() -> None:
    first = rng_for(0, "a", "bootstrap").random(4)
    rng_for(0, "b", "bootstrap").random(1000)
    assert (rng_for(0, "a", "bootstrap").random(4) == first).all()
    assert not np.isclose(rng_for(1, "a", "bootstrap").random(4), first).any()
    assert not np.isclose(rng_for(0, "a", "permutation").random(4), first).any()


def test_numbers_are_uniform_and_keys_uncorrelated() -> None:
    ids = [str(i) for i in range(20_000)]
    x, y = uniform_for(ids, 0, "x"), uniform_for(ids, 1, "x")
    for drawn in (x, y):
        assert drawn.min() >= 0 and drawn.max() < 1
        counts = np.histogram(drawn, bins=20, range=(0, 1))[0]
        chi_square = ((counts - 1000) ** 2 / 1000).sum()
        assert chi_square < 43.8  # 99.9 % of the distribution with 19 degrees of freedom
    assert abs(np.corrcoef(x, y)[0, 1]) < 4 / np.sqrt(len(ids))
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 4 / np.sqrt(len(ids))
