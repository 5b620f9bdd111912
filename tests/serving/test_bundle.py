"""The bundle: every damage is refused by name, and a new one replaces the old one whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import Trained

from data.errors import BundleError
from serving.bundle import (
    CARDS,
    FORMAT,
    INTERACTION,
    MANIFEST,
    RETRIEVER,
    TOKENIZER,
    USAGE,
    USAGE_NAMES,
    Manifest,
    check_target,
    int8_name,
    load_bundle,
    publish,
    save_usage,
    seal,
    sha256,
)
from serving.memory import Link, make_usage


def rewrite(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest without touching any hash of a file."""
    manifest = json.loads((bundle / MANIFEST).read_text())
    change(manifest)
    (bundle / MANIFEST).write_text(json.dumps(manifest))


def reseal(bundle: Path, **changes: Any) -> Manifest:
    return seal(bundle, load_bundle(bundle).manifest.model_copy(update=changes))


def test_a_whole_bundle_loads_with_its_past(trained: Trained) -> None:
    bundle = load_bundle(trained.bundle)
    assert bundle.manifest.catalog_version == trained.catalog.version
    assert bundle.has(INTERACTION)
    assert "mail.send_message" in bundle.usage.tools
    assert bundle.usage.vectors.shape[1] == 32


@pytest.mark.parametrize("name", [RETRIEVER, TOKENIZER, CARDS, USAGE, USAGE_NAMES, INTERACTION, "relevance.onnx"])
def test_a_missing_file_is_named(own_bundle: Path, name: str) -> None:
    (own_bundle / name).unlink()
    with pytest.raises(BundleError, match=f"'{name}' is missing"):
        load_bundle(own_bundle)


@pytest.mark.parametrize("name", [RETRIEVER, TOKENIZER, CARDS, USAGE, USAGE_NAMES, INTERACTION, "relevance.onnx"])
def test_one_changed_byte_is_found_in_whichever_file(own_bundle: Path, name: str) -> None:
    raw = bytearray((own_bundle / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    (own_bundle / name).write_bytes(raw)
    with pytest.raises(BundleError, match=f"'{name}' is not the file that was trained"):
        load_bundle(own_bundle)


def test_a_file_that_was_copied_in_part_is_found(own_bundle: Path) -> None:
    raw = (own_bundle / RETRIEVER).read_bytes()
    (own_bundle / RETRIEVER).write_bytes(raw[: len(raw) // 2])
    with pytest.raises(BundleError, match=r"retriever\.onnx"):
        load_bundle(own_bundle)


def drop_card_vectors(manifest: dict[str, Any]) -> None:
    del manifest["files"][CARDS]


def drop_names(manifest: dict[str, Any]) -> None:
    del manifest["files"][USAGE_NAMES]


def drop_interaction(manifest: dict[str, Any]) -> None:
    manifest["reranker"] = "interaction"
    del manifest["files"][INTERACTION]


def unhashed_reranker(manifest: dict[str, Any]) -> None:
    manifest.update(reranker="cross_encoder", reranker_graph="../elsewhere.onnx")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update(format=FORMAT + 1), f"format {FORMAT + 1} is not the format {FORMAT}"),
        (lambda m: m.pop("format"), "format None"),
        (lambda m: m.update(features=m["features"][:-1]), "features are not those of this version"),
        (lambda m: m.update(features=m["features"][::-1]), "features are not those of this version"),
        (lambda m: m.update(features_version="0"), "features_version is 0"),
        (lambda m: m.update(card_text_version="0"), "card_text_version is 0"),
        (lambda m: m.update(max_query_tokens=1), "field 'max_query_tokens'"),
        (lambda m: m.pop("base_model"), "field 'base_model'"),
        (lambda m: m.update(reranker="magic"), "field 'reranker'"),
        (lambda m: m.update(colour="red"), "field 'colour'"),
        (lambda m: m.update(retriever_graph="other.onnx"), r"lists no 'other\.onnx'"),
        (lambda m: m["files"].update({"../outside": "0"}), r"'\.\./outside' points outside"),
        (lambda m: m["files"].update({"/etc/hostname": "0"}), "'/etc/hostname' points outside"),
        (drop_card_vectors, r"lists no 'cards\.npz'"),
        (drop_names, r"lists no 'usage/names\.json'"),
        (drop_interaction, r"lists no 'interaction\.npz'"),
        (unhashed_reranker, r"lists no '\.\./elsewhere\.onnx'"),
    ],
)
def test_a_manifest_of_another_form_is_refused_with_the_reason(
    own_bundle: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    rewrite(own_bundle, change)
    with pytest.raises(BundleError, match=said):
        load_bundle(own_bundle)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_manifest_that_is_no_manifest_is_refused(own_bundle: Path, raw: bytes) -> None:
    (own_bundle / MANIFEST).write_bytes(raw)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        load_bundle(own_bundle)


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no manifest\.json here"):
        load_bundle(tmp_path)
    with pytest.raises(BundleError, match="bundle"):
        load_bundle(tmp_path / "nowhere")


def test_the_version_follows_every_file_and_how_it_is_run_and_nothing_else(own_bundle: Path) -> None:
    before = load_bundle(own_bundle).version
    assert reseal(own_bundle).version == before
    assert reseal(own_bundle, mlflow_run="other", metrics={"ndcg@10": 1.0}).version == before
    assert reseal(own_bundle, missing_below=0.123).version != before
    reseal(own_bundle, missing_below=load_bundle(own_bundle).manifest.missing_below)
    (own_bundle / "notes.txt").write_text("one more file")
    assert reseal(own_bundle).version != before


def test_sealing_covers_files_in_folders_too(own_bundle: Path) -> None:
    (own_bundle / "deep" / "er").mkdir(parents=True)
    (own_bundle / "deep" / "er" / "file").write_text("x")
    sealed = reseal(own_bundle)
    assert sealed.files["deep/er/file"] == sha256(own_bundle / "deep" / "er" / "file")
    assert MANIFEST not in sealed.files


def test_a_bundle_without_a_memory_has_an_empty_past(own_bundle: Path) -> None:
    shutil.rmtree(own_bundle / "usage")
    rewrite(own_bundle, lambda m: m.update(files={k: v for k, v in m["files"].items() if "usage" not in k}))
    usage = load_bundle(own_bundle).usage
    assert (usage.tools, usage.vectors.shape) == ((), (0, 32))


def test_the_past_comes_back_as_it_was_saved(own_bundle: Path) -> None:
    vectors = np.eye(3, 32, dtype=np.float32)
    links = [Link(0, "näme", 0.5, "t"), Link(1, None, 1.0), Link(2, "b", 0.25, "", True)]
    usage = make_usage(vectors, links, [7, 7, 8])
    save_usage(own_bundle, usage)
    seal(own_bundle, Manifest.model_validate_json((own_bundle / MANIFEST).read_text()))
    loaded = load_bundle(own_bundle).usage
    for name, value in usage.__dict__.items():
        np.testing.assert_array_equal(getattr(loaded, name), value)


def new_bundle(source: Path, folder: Path, **changes: Any) -> Path:
    shutil.copytree(source, folder)
    reseal(folder, **changes)
    return folder


def test_publishing_puts_a_bundle_where_there_was_none(trained: Trained, tmp_path: Path) -> None:
    target = tmp_path / "bundle"
    publish(new_bundle(trained.bundle, tmp_path / "fresh"), target)
    assert load_bundle(target).version == load_bundle(trained.bundle).version
    assert os.listdir(tmp_path) == ["bundle"]


def test_publishing_replaces_an_older_bundle_whole(trained: Trained, own_bundle: Path, tmp_path: Path) -> None:
    (own_bundle / "leftover.txt").write_text("of the old one")
    publish(new_bundle(trained.bundle, tmp_path / "fresh", missing_below=0.5), own_bundle)
    assert load_bundle(own_bundle).manifest.missing_below == 0.5
    assert not (own_bundle / "leftover.txt").exists()
    assert os.listdir(tmp_path) == ["bundle"]


def test_a_bundle_that_cannot_be_put_in_place_leaves_the_old_one_serving(own_bundle: Path, tmp_path: Path) -> None:
    before = load_bundle(own_bundle).version
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "never made", own_bundle)
    assert load_bundle(own_bundle).version == before
    assert os.listdir(tmp_path) == ["bundle"]


def test_a_folder_that_holds_something_else_is_left_alone(trained: Trained, tmp_path: Path) -> None:
    target = tmp_path / "home"
    target.mkdir()
    (target / "thesis.txt").write_text("years of work")
    fresh = new_bundle(trained.bundle, tmp_path / "fresh")
    with pytest.raises(BundleError, match="something other than a bundle"):
        publish(fresh, target)
    assert (target / "thesis.txt").read_text() == "years of work"
    assert load_bundle(fresh).version


def test_an_empty_folder_may_become_a_bundle_and_a_file_may_not(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    publish(new_bundle(trained.bundle, tmp_path / "fresh"), tmp_path / "empty")
    assert load_bundle(tmp_path / "empty").version
    (tmp_path / "file").write_text("x")
    with pytest.raises(BundleError, match="file: holds something other"):
        check_target(tmp_path / "file")


def test_the_int8_twin_is_named_after_its_graph() -> None:
    assert int8_name(RETRIEVER) == "retriever.int8.onnx"
