"""Atomic files: the old content or the new, never a part."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from data.atomic import replacing
from data.errors import InputError


def test_the_old_content_stands_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with replacing(path) as fresh:
        fresh.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_in_the_block_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")

    def half_a_write() -> None:
        with replacing(path) as fresh:
            fresh.write_text("half")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        half_a_write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_are_made_and_a_link_is_followed(tmp_path: Path) -> None:
    with replacing(tmp_path / "a" / "b") as fresh:
        fresh.write_text("new")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "a" / "b")
    with replacing(link) as fresh:
        fresh.write_text("newer")
    assert link.is_symlink()
    assert (tmp_path / "a" / "b").read_text() == "newer"


def test_the_mode_is_the_users_and_not_a_private_one(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    with replacing(tmp_path / "f") as fresh:
        fresh.touch()
    assert os.stat(tmp_path / "f").st_mode == os.stat(plain).st_mode


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be written"), replacing(tmp_path / "file" / "f") as fresh:
        fresh.touch()
