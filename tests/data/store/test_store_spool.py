"""The spool: whole records come back in order, torn ones are set aside, and what does not fit leaves no trace."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_material import DROPPED, body, decision, outcome

from data.store import spool as spool_module
from data.store.errors import SpoolFullError, StoreError
from data.store.frames import framed, pieces
from data.store.records import Decision, Mask, Record
from data.store.spool import Spool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.spool"


@pytest.fixture
def spool(path: Path) -> Iterator[Spool]:
    opened = Spool(path)
    yield opened
    opened.close()


def replayed(spool: Spool) -> list[Record]:
    found: list[Record] = []
    spool.replay(found.extend)
    return found


def reopened(path: Path) -> list[Record]:
    """What another process finds there."""
    other = Spool(path)
    found = replayed(other)
    other.close()
    return found


def keys(records: Sequence[Record]) -> list[str]:
    return [getattr(record, "key", "") for record in records]


def test_records_come_back_in_their_order_and_the_file_is_empty_then(spool: Spool, path: Path) -> None:
    spool.append([outcome("k1"), outcome("k2")])
    spool.append([outcome("k3")])
    assert replayed(spool) == [outcome("k1"), outcome("k2"), outcome("k3")]
    assert path.stat().st_size == 0
    assert replayed(spool) == []


def test_a_decision_comes_back_with_the_mask_that_it_shares(spool: Spool) -> None:
    spool.append([decision("s1"), decision("s2")])
    mask, first, second = replayed(spool)
    assert isinstance(mask, Mask)
    assert mask.withheld == {"mask": DROPPED}
    assert isinstance(first, Decision)
    assert isinstance(second, Decision)
    assert (first.slice_id, first.mask_digest, second.mask_digest) == ("s1", mask.digest, mask.digest)
    assert first.embedding == decision().embedding
    assert first.body["record"][2] == body()["record"][2]


def test_a_mask_is_written_again_into_the_emptied_file(spool: Spool) -> None:
    spool.append([decision("s1")])
    replayed(spool)
    spool.append([decision("s2")])
    assert [type(record).__name__ for record in replayed(spool)] == ["Mask", "Decision"]


def test_what_the_store_does_not_take_is_handed_to_it_again(spool: Spool) -> None:
    spool.append([outcome("k1")])

    def away(records: Sequence[Record]) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        spool.replay(away)
    assert keys(replayed(spool)) == ["k1"]


def test_records_that_come_during_a_replay_are_left_for_the_next(spool: Spool, path: Path) -> None:
    spool.append([outcome(f"k{number}") for number in range(600)])

    def store(records: Sequence[Record]) -> None:
        spool.append([outcome("late")])

    assert 600 <= spool.replay(store) <= 602
    assert set(keys(replayed(spool))) == {"late"}
    assert path.stat().st_size == 0


def test_what_a_killed_process_left_is_found_by_the_next(path: Path) -> None:
    spool = Spool(path)
    spool.append([outcome("k1"), decision("s1")])
    spool.close()
    assert keys(reopened(path)) == ["k1", "", ""]


@pytest.mark.parametrize("kept", [1, 5, 11, 12, 40])
def test_a_torn_end_is_set_aside_and_what_was_whole_is_read(path: Path, kept: int) -> None:
    spool = Spool(path)
    spool.append([outcome("k1")])
    whole = path.read_bytes()
    spool.append([outcome("k2")])
    spool.close()
    torn = path.read_bytes()[: len(whole) + kept]
    path.write_bytes(torn)
    assert keys(reopened(path)) == ["k1"]
    (aside,) = path.parent.glob("traces.spool.torn-*")
    assert aside.read_bytes() == torn[len(whole) :]
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600


def test_what_is_written_after_a_torn_end_is_read(path: Path) -> None:
    path.write_bytes(b"the beginning of a rec")
    spool = Spool(path)
    spool.append([outcome("k1")])
    spool.close()
    assert keys(reopened(path)) == ["k1"]


def test_a_changed_byte_costs_its_own_record_only(path: Path) -> None:
    spool = Spool(path)
    ends = []
    for key in ("k1", "k2", "k3"):
        spool.append([outcome(key)])
        ends.append(path.stat().st_size)
    spool.close()
    content = bytearray(path.read_bytes())
    content[ends[0] + 30] ^= 0x40
    path.write_bytes(content)
    assert keys(reopened(path)) == ["k1", "k3"]
    (aside,) = path.parent.glob("traces.spool.torn-*")
    assert aside.read_bytes() == content[ends[0] : ends[1]]


def test_a_record_of_another_version_is_set_aside(path: Path) -> None:
    path.write_bytes(framed(b"no record of ours"))
    assert reopened(path) == []
    assert len(list(path.parent.glob("traces.spool.torn-*"))) == 1


def test_a_full_spool_refuses_and_keeps_what_it_has(path: Path) -> None:
    spool = Spool(path, max_bytes=1000)
    spool.append([outcome("k1")])
    with pytest.raises(SpoolFullError, match="the spool is full"):
        spool.append([outcome(f"k{number}") for number in range(2, 20)])
    assert keys(replayed(spool)) == ["k1"]
    spool.close()


def test_a_full_disk_leaves_no_part_of_a_record(spool: Spool, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append([outcome("k1")])
    before = path.read_bytes()
    really = os.pwrite

    def full(file: int, content: bytes, offset: int) -> int:
        if offset > len(before):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really(file, content[:10], offset)

    monkeypatch.setattr(spool_module.os, "pwrite", full)
    with pytest.raises(SpoolFullError, match="No space left on device"):
        spool.append([outcome("k2")])
    monkeypatch.undo()
    assert path.read_bytes() == before
    spool.append([outcome("k3")])
    assert keys(replayed(spool)) == ["k1", "k3"]


def test_a_record_with_no_json_form_is_refused_with_all_that_came_with_it(spool: Spool) -> None:
    with pytest.raises(ValueError, match="JSON"):
        spool.append([outcome("k1"), decision(body={"score": float("inf")})])
    assert replayed(spool) == []


def test_two_processes_cannot_have_one_spool(spool: Spool, path: Path) -> None:
    with pytest.raises(StoreError, match="in use by another process"):
        Spool(path)


def test_a_closed_spool_refuses(path: Path) -> None:
    closed = Spool(path)
    closed.close()
    with pytest.raises(SpoolFullError, match="Bad file descriptor"):
        closed.append([outcome("k1")])


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/traces\.spool"):
        Spool(tmp_path / "file" / "traces.spool")


def test_only_its_owner_reads_it(spool: Spool, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@given(
    payloads=st.lists(st.binary(max_size=40), max_size=6),
    cut=st.integers(0, 300),
    flip=st.none() | st.integers(0, 300),
)
def test_whatever_is_torn_or_changed_no_payload_is_read_that_was_not_written(
    payloads: list[bytes], cut: int, flip: int | None
) -> None:
    content = bytearray(b"".join(framed(payload) for payload in payloads)[:cut])
    if flip is not None and flip < len(content):
        content[flip] ^= 1
    found = list(pieces(bytes(content), 0, len(content)))
    assert [piece.start for piece in found[1:]] == [piece.stop for piece in found[:-1]]
    assert sum(piece.stop - piece.start for piece in found) == len(content)
    read = [piece.payload for piece in found if piece.payload is not None]
    rest = iter(payloads)
    assert all(payload in rest for payload in read)  # in their order
    untouched = flip is None or flip >= len(content)
    if untouched:
        assert read == payloads[: len(read)]
        assert len(content) - sum(12 + len(payload) for payload in read) < 12 + 40
