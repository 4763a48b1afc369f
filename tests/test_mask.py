"""`_core.Mask` against a Python set, and its bytes against damage."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorepair._core import Mask
from memorepair.errors import CapacityError, InvalidGraphError, InvalidMaskError, NodeRangeError


def ids(values: object) -> np.ndarray:
    return np.array(sorted(values) if isinstance(values, set) else values, dtype=np.uint32)


def make(values: set[int], size: int) -> Mask:
    return Mask.from_ids(ids(values), size)


@st.composite
def sized_sets(draw: st.DrawFn) -> tuple[set[int], int]:
    size = draw(st.integers(0, 400))
    if size == 0:
        return set(), 0
    members = draw(st.sets(st.integers(0, size - 1), max_size=40))
    for first, length in draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, 150)), max_size=3)):
        members |= set(range(first, min(size, first + length)))
    return members, size


@settings(deadline=None, max_examples=300)
@given(sized_sets(), sized_sets())
def test_operators_are_set_operators(left: tuple[set[int], int], right: tuple[set[int], int]) -> None:
    (a, size_a), (b, size_b) = left, right
    x, y, size = make(a, size_a), make(b, size_b), max(size_a, size_b)
    for mask, expected in ((x | y, a | b), (x & y, a & b), (x - y, a - b)):
        assert mask.size == size
        assert mask.ids().tolist() == sorted(expected)
        assert mask.count() == len(expected)
        assert bool(mask) == bool(expected)
        assert mask == make(expected, size)
    assert (x == y) == (a == b and size_a == size_b)
    assert x.ids().tolist() == sorted(a)  # operands never change


@settings(deadline=None, max_examples=200)
@given(sized_sets(), st.data())
def test_lookups(sized: tuple[set[int], int], data: st.DataObject) -> None:
    members, size = sized
    mask = make(members, size)
    asked = data.draw(st.lists(st.integers(0, size - 1), max_size=300)) if size else []
    hit = mask.test(ids(asked))
    assert hit.dtype == np.bool_
    assert hit.tolist() == [i in members for i in asked]
    assert mask.filter(ids(asked)).tolist() == [i for i in asked if i not in members]
    assert all((i in mask) == (i in members) for i in asked)
    assert mask.resized(size + 77) == make(members, size + 77)


@pytest.mark.parametrize("count", [0, 1, 300, 30_000, 400_000])
@pytest.mark.parametrize("asked", [0, 1, 15, 100, 5_000, 1_500_000])
def test_lookups_of_every_size_agree_with_numpy(count: int, asked: int) -> None:
    rng = np.random.default_rng(count + asked)
    size = 1_000_001
    members, wanted = (rng.integers(0, size, n).astype(np.uint32) for n in (count, asked))
    is_set = np.zeros(size, dtype=bool)
    is_set[members] = True
    mask = Mask.from_ids(members, size)
    assert np.array_equal(mask.test(wanted), is_set[wanted])
    assert np.array_equal(mask.filter(wanted), wanted[~is_set[wanted]])
    assert mask.filter(members).size == 0
    if asked:
        wanted[rng.integers(asked)] = size
        for lookup in (mask.test, mask.filter):
            with pytest.raises(NodeRangeError, match="expected an id below 1000001, got 1000001"):
                lookup(wanted)


@settings(deadline=None, max_examples=200)
@given(sized_sets())
def test_bytes_round_trip_and_are_canonical(sized: tuple[set[int], int]) -> None:
    members, size = sized
    mask = make(members, size)
    data = mask.to_bytes()
    assert Mask.from_bytes(data) == mask
    shuffled = np.random.default_rng(0).permutation(ids(members)).astype(np.uint32)
    assert Mask.from_ids(np.concatenate([shuffled, shuffled]), size).to_bytes() == data
    assert (make(members, size + 100) - Mask(size)).resized(size).to_bytes() == data
    assert len(data) <= 11 + (size + 7) // 8


@pytest.mark.parametrize("members", [set(), {0}, {3, 77, 299}, set(range(20, 280)), set(range(0, 300, 3))])
def test_damaged_bytes_are_refused(members: set[int]) -> None:
    data = make(members, 300).to_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidMaskError):
            Mask.from_bytes(bytes(flipped))
    for length in range(len(data)):
        with pytest.raises(InvalidMaskError):
            Mask.from_bytes(data[:length])
    with pytest.raises(InvalidMaskError):
        Mask.from_bytes(data + b"\0")


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    with contextlib.suppress(InvalidMaskError):
        assert Mask.from_bytes(data).to_bytes() == data


def test_bytes_are_compact() -> None:
    assert len(make(set(), 10**6).to_bytes()) < 12
    assert len(Mask.from_ids(np.arange(10**6, dtype=np.uint32), 10**6).to_bytes()) < 16
    assert len(make({5, 10**6 - 1}, 10**6).to_bytes()) < 16
    noise = np.flatnonzero(np.random.default_rng(1).random(10**5) < 0.5).astype(np.uint32)
    assert len(Mask.from_ids(noise, 10**5).to_bytes()) < 10**5 // 8 + 16


def test_small_set_below_a_huge_size_stays_small() -> None:
    mask = make({0, 1, 2, 2**32 - 2}, 2**32 - 1)
    assert mask.count() == 4
    assert Mask.from_bytes(mask.to_bytes()) == mask
    assert (mask - make({1}, 2)).ids().tolist() == [0, 2, 2**32 - 2]
    assert np.uint32(2) in mask


def test_out_of_range_is_refused() -> None:
    mask = make({1}, 5)
    for call in (
        lambda: Mask.from_ids(ids([5]), 5),
        lambda: mask.test(ids([5])),
        lambda: mask.filter(ids([5])),
        lambda: -1 in mask,
        lambda: mask.resized(1),
    ):
        with pytest.raises(NodeRangeError, match=r"expected .*got"):
            call()
    assert mask.resized(2).size == 2
    assert 5 not in mask  # as in a set
    assert 10**30 not in mask
    for call in (lambda: Mask(2**32), lambda: Mask(10**30), lambda: mask.resized(2**40)):
        with pytest.raises(CapacityError):
            call()
    for call in (lambda: Mask(-1), lambda: Mask.from_ids(ids([]), -(10**30)), lambda: mask.resized(-1)):
        with pytest.raises(InvalidGraphError, match="at least 0"):
            call()


@pytest.mark.parametrize(
    "bad",
    [
        [1, 2],
        np.array([1, 2]),
        np.array([1.0], dtype=np.float32),
        np.array([[1]], dtype=np.uint32),
        np.arange(10, dtype=np.uint32)[::2],
        np.array([1], dtype=">u4"),
        None,
    ],
    ids=["list", "int64", "float", "2-D", "strided", "big-endian", "None"],
)
def test_wrong_arrays_are_type_errors(bad: object) -> None:
    with pytest.raises(TypeError, match=r"ids: expected a .*uint32, got"):
        Mask.from_ids(bad, 100)  # type: ignore[arg-type]


def test_wrong_scalars_are_type_errors() -> None:
    for bad in (1.5, "1", None, True):
        with pytest.raises(TypeError):
            Mask(bad)  # type: ignore[arg-type]


def test_masks_and_arrays_are_immutable() -> None:
    mask = make(set(range(0, 100, 2)), 100)
    for array in (mask.ids(), mask.test(ids([1])), mask.filter(ids([1]))):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    with pytest.raises(AttributeError):
        mask.size = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(mask)
    assert mask != "mask"
    with pytest.raises(TypeError):
        mask | {1}  # type: ignore[operator]
    assert repr(mask) == "Mask(size=100, count=50)"


def test_results_outlive_their_mask() -> None:
    array = make({1, 2, 90}, 100).ids()
    assert array.tolist() == [1, 2, 90]
