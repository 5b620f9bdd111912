"""A package that shadows one of toolcrib's own is named, with what to do; nothing else is said instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import data
import toolcrib
from data.cards import ToolCard
from data.context import Caller
from toolcrib.floors import ShadowedPackageError, check_floors

ROOT = Path(data.__file__).resolve().parent.parent


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter started in `folder`, which is first on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_toolcribs_own_packages_pass() -> None:
    check_floors()


def test_the_public_names_are_the_real_things() -> None:
    assert toolcrib.ToolCard is ToolCard
    assert toolcrib.Caller is Caller
    assert {"Selector", "Caller", "Subgoal", "ToolCard", "Catalog"} <= set(dir(toolcrib))


def test_a_name_that_toolcrib_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Selecter'"):
        _ = toolcrib.Selecter


@pytest.mark.parametrize("floor", ["data", "serving", "training"])
def test_the_command_names_the_shadowing_file_in_one_line(tmp_path: Path, floor: str) -> None:
    (tmp_path / floor).mkdir()
    (tmp_path / floor / "__init__.py").write_text("SOMETHING_ELSE = 1\n")
    done = python(tmp_path, "-m", "toolcrib", "--help")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: package '{floor}' is imported from {tmp_path / floor / '__init__.py'}")
    assert str(ROOT / floor) in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_shadow_that_fails_on_import_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("raise RuntimeError('boom')\n")
    done = python(tmp_path, "-m", "toolcrib", "--help")
    assert done.returncode == 2
    assert f"imported from {tmp_path / 'data.py'}, which fails on import: boom" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_public_name_under_a_shadow_is_a_clear_import_error(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("")
    done = python(
        tmp_path,
        "-c",
        "import toolcrib\ntry:\n    from toolcrib import Caller\nexcept ImportError as error:\n    print(error)",
    )
    assert "package 'data' is imported from" in done.stdout


def test_a_missing_package_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "training", None)
    with pytest.raises(ShadowedPackageError, match="package 'training' is imported from nowhere"):
        check_floors()
