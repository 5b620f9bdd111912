"""A registered bundle by its alias: what the alias stands for now is what serves."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shop import open_shop
from tiny import Trained

from data.errors import InputError
from serving.bundle import load_bundle, seal
from serving.watch import alias_source
from training.registered import registered
from training.tracking import MODEL, TrackingError, open_client, track

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("MLFLOW_REGISTRY_URI", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "toolcrib" / "models"


def publish(root: Path, folder: Path) -> str:
    """Register a folder as the next version; gives its number."""
    with track(root, name="training") as run:
        return run.register(folder, load_bundle(folder).version, {})


def test_the_service_follows_an_alias_of_the_registry(
    trained: Trained, new_store: Callable[[], Path], tmp_path: Path, own_cache: Path
) -> None:
    root = new_store()
    other = Path(shutil.copytree(trained.bundle, tmp_path / "other"))
    seal(other, load_bundle(other).manifest.model_copy(update={"widen_below": 0.123}))
    first, second = publish(root, trained.bundle), publish(root, other)
    client = open_client(root)
    client.set_registered_model_alias(MODEL, "champion", first)
    tools = [card.model_dump(mode="json") for card in trained.catalog]
    source = alias_source(registered(f"models:/{MODEL}@champion", root))
    (tmp_path / "served").mkdir()
    with open_shop(tmp_path / "served", tools, bundle=source) as shop:
        served = shop.select("send the email for anna")["versions"]["bundle"]
        assert served == load_bundle(trained.bundle).version
        client.set_registered_model_alias(MODEL, "champion", second)
        shop.assembly.watch.poll()
        assert shop.select("send the email for anna")["versions"]["bundle"] == load_bundle(other).version
        client.set_registered_model_alias(MODEL, "champion", first)
        shop.assembly.watch.poll()
        assert shop.select("send the email for anna")["versions"]["bundle"] == served
        client.delete_registered_model_alias(MODEL, "champion")
        shop.assembly.watch.poll()
        assert shop.select("send the email for bob")["versions"]["bundle"] == served, "the old one serves on"
    assert len(list(own_cache.iterdir())) == 2, "each version was fetched once"
    assert load_bundle(registered(f"models:/{MODEL}/{second}", root)()).version == load_bundle(other).version


def test_two_that_fetch_at_once_get_one_whole_folder(
    trained: Trained, new_store: Callable[[], Path], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = new_store()
    resolve = registered(f"models:/{MODEL}/{publish(root, trained.bundle)}", root)
    place, rename = resolve(), Path.rename
    shutil.rmtree(place)

    def second_is_first(path: Path, target: Path) -> Path:
        if path != target and not target.exists():
            shutil.copytree(path, target)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", second_is_first)
    assert resolve() == place
    assert load_bundle(place).version == load_bundle(trained.bundle).version
    assert sorted(one.name for one in place.iterdir()) == sorted(one.name for one in trained.bundle.iterdir())
    assert [one.name for one in own_cache.iterdir()] == [place.name], "nothing is left beside it"


@pytest.mark.parametrize("name", ["models:/", "models:/toolcrib", "models:/a/b/c", "models:/a@", "runs:/a/b"])
def test_another_form_of_name_is_refused(name: str, new_store: Callable[[], Path]) -> None:
    with pytest.raises(InputError, match="models:/toolcrib@champion"):
        registered(name, new_store())


def test_an_unknown_model_is_said_when_it_is_asked_for(new_store: Callable[[], Path]) -> None:
    resolve = registered("models:/nobody@champion", new_store())
    with pytest.raises(TrackingError, match="nobody"):
        resolve()
