"""Sources that change: what is noticed when, what is refused, and that what serves is always whole."""

from __future__ import annotations

import gc
import os
import shutil
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
from test_live import GOAL, NEW, ranked, without_mail

from data.card_text import card_text
from data.catalog import Catalog
from data.context import Caller
from data.errors import BundleError, InputError
from data.jsonl import save_catalog
from serving.bundle import MANIFEST, Bundle, Manifest, load_bundle, save_usage, seal
from serving.encoder import Encoded
from serving.following import BundleFolder, CatalogFile, Watch
from serving.selector import Selector
from serving.watch import Version, alias_source, bundle_source, file_source


def a_moment_ago(*files: Path) -> None:
    """As if they had been written then: what is younger may still be being written."""
    then = time.time() - 1.0
    for file in files:
        os.utime(file, (then, then))


def publish(file: Path, catalog: Catalog) -> None:
    save_catalog(file, catalog)
    a_moment_ago(file)


@pytest.fixture
def catalog_file(tmp_path: Path) -> Path:
    publish(tmp_path / "catalog.jsonl", tiny.catalog())
    return tmp_path / "catalog.jsonl"


def build(catalog: Catalog, bundle: Bundle | None, earlier: Selector | None) -> Selector:
    return Selector(bundle, catalog, earlier=earlier)


@pytest.fixture
def watch(own_bundle: Path, catalog_file: Path) -> Watch:
    return Watch(CatalogFile(catalog_file), BundleFolder(bundle_source(own_bundle)), build)


def test_nothing_new_is_nothing_done(watch: Watch) -> None:
    serving = watch.live.current
    assert [watch.poll() for _ in range(3)] == [None] * 3
    assert watch.live.current is serving


def test_a_changed_catalog_is_noticed_once(watch: Watch, catalog_file: Path) -> None:
    publish(catalog_file, without_mail())
    swap = watch.poll()
    assert swap is not None
    assert swap.accepted
    assert "mail.send_message" not in watch.live.current.catalog
    assert watch.poll() is None


def test_a_broken_catalog_is_refused_and_a_mended_one_taken(watch: Watch, catalog_file: Path) -> None:
    good = catalog_file.read_bytes()
    catalog_file.write_bytes(good[: len(good) // 2])
    a_moment_ago(catalog_file)
    refused = watch.poll()
    assert refused is not None
    assert not refused.accepted
    assert "catalog.jsonl" in refused.problem
    assert watch.poll() is None, "what was refused is not tried again"
    publish(catalog_file, without_mail())
    mended = watch.poll()
    assert mended is not None
    assert mended.accepted


def test_a_catalog_is_not_read_while_it_is_being_written(watch: Watch, catalog_file: Path) -> None:
    lines = catalog_file.read_bytes().splitlines(keepends=True)
    with catalog_file.open("wb") as file:
        for line in lines[:-1]:
            file.write(line)
            file.flush()
            assert watch.poll() is None, "each of these is a whole catalog of fewer tools"
    a_moment_ago(catalog_file)
    swap = watch.poll()
    assert swap is not None
    assert len(watch.live.current.catalog) == len(lines) - 1


def test_a_file_whose_time_is_ahead_is_taken_once_it_has_stood_still(
    watch: Watch, catalog_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_catalog(catalog_file, without_mail())
    ahead = time.time() + 3600
    os.utime(catalog_file, (ahead, ahead))
    assert watch.poll() is None
    later = time.monotonic_ns() + 10**9
    monkeypatch.setattr("serving.watch.time.monotonic_ns", lambda: later)
    swap = watch.poll()
    assert swap is not None
    assert swap.accepted


def test_a_bundle_that_is_still_being_copied_is_taken_once_it_is_whole(watch: Watch, own_bundle: Path) -> None:
    graph = own_bundle / "retriever.onnx"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-10])
    assert watch.poll() is None, "it is not even looked into"
    a_moment_ago(graph)
    refused = watch.poll()
    assert refused is not None
    assert "retriever.onnx" in refused.problem
    graph.write_bytes(whole)
    a_moment_ago(graph)
    taken = watch.poll()
    assert taken is not None
    assert taken.accepted
    assert not taken.changed, "it is the bundle that has served all the while"


def test_a_new_bundle_in_the_same_place_is_taken(watch: Watch, own_bundle: Path) -> None:
    before = watch.live.current
    manifest = load_bundle(own_bundle).manifest
    seal(own_bundle, manifest.model_copy(update={"rerank_depth": manifest.rerank_depth + 1}))
    a_moment_ago(own_bundle / MANIFEST)
    swap = watch.poll()
    assert swap is not None
    assert swap.accepted
    assert watch.live.current.versions.bundle != before.versions.bundle
    assert watch.live.current.encoder is not before.encoder


def test_what_else_lies_in_a_bundles_folder_is_not_the_bundle(own_bundle: Path) -> None:
    look = bundle_source(own_bundle)
    first = look()
    (own_bundle / "traces.db").write_bytes(b"grows")
    (own_bundle / "usage" / "notes.txt").write_text("and more")
    assert look() == first


def test_a_new_catalog_leaves_the_models_loaded_and_unchanged_cards_unread(
    watch: Watch, catalog_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = watch.live.current
    texts = list[str]()
    encoder = before.encoder
    assert encoder is not None
    encode = encoder.encode

    def counted(given: Sequence[str], *more: object, **how: object) -> Encoded:
        texts.extend(given)
        return encode(given, *more, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(encoder, "encode", counted)
    publish(catalog_file, Catalog([*tiny.catalog(), NEW]))
    assert watch.poll() is not None
    assert watch.live.current.encoder is encoder
    assert [text for text in texts if text == card_text(NEW)] == [card_text(NEW)]
    assert not {card_text(card) for card in tiny.catalog()} & set(texts)


def test_while_a_bundle_is_broken_the_catalog_is_followed(watch: Watch, own_bundle: Path, catalog_file: Path) -> None:
    bundle = watch.live.current.versions.bundle
    for name in ("retriever.onnx", "cards.npz", "usage/memory.npz"):
        (own_bundle / name).write_bytes(b"overwritten in place")
        a_moment_ago(own_bundle / name)
    refused = watch.poll()
    assert refused is not None
    assert not refused.accepted
    publish(catalog_file, Catalog([*without_mail(), NEW]))
    swap = watch.poll()
    assert swap is not None
    assert swap.accepted
    assert watch.live.current.versions.bundle == bundle
    found = watch.live.current.select("play a song", Caller(scopes=("m",)), request_id="r")
    assert "music.play_song" in found.ranking
    assert "mail.send_message" not in found.ranking


def test_of_two_that_do_not_go_together_what_can_serve_is_taken(
    watch: Watch, own_bundle: Path, catalog_file: Path
) -> None:
    """A bundle of another catalog comes together with a new catalog of this one."""
    before = watch.live.current.versions
    usage = load_bundle(own_bundle).usage
    save_usage(own_bundle, replace(usage, tools=tuple(f"elsewhere.{tool}" for tool in usage.tools)))
    seal(own_bundle, load_manifest(own_bundle))
    a_moment_ago(*(own_bundle / name for name in (MANIFEST, "usage/memory.npz", "usage/names.json")))
    publish(catalog_file, without_mail())
    swap = watch.poll()
    assert swap is not None
    assert not swap.accepted
    assert "trained on another catalog" in swap.problem
    assert watch.live.current.versions.bundle == before.bundle
    assert watch.live.current.versions.catalog == swap.after.catalog == without_mail().version
    assert watch.poll() is None


def load_manifest(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / MANIFEST).read_text())


def test_a_source_that_cannot_be_read_is_reported_once_and_changes_nothing(watch: Watch, catalog_file: Path) -> None:
    serving, content = watch.live.current, catalog_file.read_bytes()
    catalog_file.unlink()
    reports = [watch.poll() for _ in range(3)]
    assert reports[0] is not None
    assert not reports[0].accepted
    assert "catalog.jsonl" in reports[0].problem
    assert reports[1:] == [None, None]
    catalog_file.write_bytes(content)
    assert watch.poll() is None, "it is back, and the same"
    assert watch.live.current is serving


def test_a_link_that_moves_is_another_bundle_and_never_a_mixture(
    own_bundle: Path, tmp_path: Path, catalog_file: Path
) -> None:
    link, second = tmp_path / "current", tmp_path / "second"
    shutil.copytree(own_bundle, second)
    link.symlink_to(own_bundle)
    look = bundle_source(link)
    first = look()
    link.unlink()
    link.symlink_to(second)
    assert (first.path, look().path) == (own_bundle.resolve(), second.resolve())
    assert look().digest == bundle_source(second)().digest


def test_an_alias_is_another_version_only_when_the_bundle_is(own_bundle: Path, tmp_path: Path) -> None:
    fetched = shutil.copytree(own_bundle, tmp_path / "fetched again")
    places = iter([own_bundle, fetched])
    look = alias_source(lambda: next(places))
    first, again = look(), look()
    assert first.digest == again.digest
    assert again.path == fetched.resolve()


def test_an_alias_that_cannot_be_resolved_leaves_the_old_bundle_serving(own_bundle: Path, catalog_file: Path) -> None:
    reachable = [True]

    def resolve() -> Path:
        if not reachable[0]:
            raise ConnectionError("the registry does not answer")
        return own_bundle

    watch = Watch(CatalogFile(catalog_file), BundleFolder(alias_source(resolve)), build)
    reachable[0] = False
    report = watch.poll()
    assert report is not None
    assert "does not answer" in report.problem
    assert ranked(watch.live.current)


def test_a_file_that_changes_twice_at_the_same_size_is_seen_twice(tmp_path: Path) -> None:
    file = tmp_path / "f"
    look, seen = file_source(file), list[Version]()
    for content in (b"aa", b"bb", b"cc"):
        file.write_bytes(content)
        a_moment_ago(file)
        seen.append(look())
    assert len({version.digest for version in seen}) == 3


def test_a_first_selector_that_cannot_serve_is_an_error(tmp_path: Path, catalog_file: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        Watch(CatalogFile(tmp_path / "nowhere"), None, build)
    with pytest.raises(BundleError, match="manifest"):
        Watch(CatalogFile(catalog_file), BundleFolder(bundle_source(tmp_path)), build)


def test_a_selector_that_was_replaced_is_let_go_of_at_once(watch: Watch, catalog_file: Path) -> None:
    """Its arrays are large and its objects few, so that the garbage collector would let many of them pile up."""
    gone = [weakref.ref(watch.live.current), weakref.ref(watch.live.current.index.lexical)]
    watch.live.current.select(GOAL, Caller(tenant="acme"), request_id="r")
    publish(catalog_file, without_mail())
    gc.disable()
    try:
        assert watch.poll() is not None
        assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()
