"""The recipe: read whole or refused with every problem at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from data.errors import RecipeError
from training.recipe import DEFAULT_BASE, Recipe, base_path, check, load_recipe


def written(folder: Path, values: Any) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return path


def test_no_file_and_an_empty_file_mean_the_defaults(tmp_path: Path) -> None:
    assert load_recipe(None) == Recipe() == load_recipe(written(tmp_path, ""))


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, {"seed": 3, "retriever": {"epochs": 0.5}, "mining": {"repeat_cap": 4}}))
    assert (recipe.seed, recipe.retriever.epochs, recipe.mining.repeat_cap) == (3, 0.5, 4)
    assert recipe.retriever.batch_size == Recipe().retriever.batch_size


def test_every_problem_of_a_file_is_named_at_once(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "sed": 1,
            "retriever": {"epochs": -1, "learning_rate": "fast"},
            "split": {"valid_share": 1.0},
            "head": {"turned_away": float("nan")},
            "interaction": {"epochs": 2.5},
            "reranker": "best",
        },
    )
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: 7 problem(s)")
    for name in ("sed", "retriever.epochs", "retriever.learning_rate", "split.valid_share", "head.turned_away"):
        assert f"'{name}'" in said
    assert "'interaction.epochs'" in said
    assert "'reranker'" in said


@pytest.mark.parametrize("name", ["retriever.epochs", "retriever.learning_rate", "usage_half_life_days"])
def test_a_training_without_an_end_is_refused(tmp_path: Path, name: str) -> None:
    part, _, key = name.partition(".")
    values = {part: {key: float("inf")}} if key else {part: float("inf")}
    with pytest.raises(RecipeError, match=f"'{name}'"):
        load_recipe(written(tmp_path, values))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n- b", "expected keys and values, found list"),
        ("just words", "expected keys and values, found str"),
        ("a: [1", "is not YAML"),
        ("a: !!python/object/apply:os.system ['true']", "is not YAML"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        load_recipe(written(tmp_path, text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"nowhere\.yaml: there is no such file"):
        load_recipe(tmp_path / "nowhere.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RecipeError, match="cannot be read"):
        load_recipe(tmp_path / "bytes.yaml")
    with pytest.raises(RecipeError, match="cannot be read"):
        load_recipe(tmp_path)


def test_settings_that_contradict_each_other_are_all_named() -> None:
    recipe = Recipe.model_validate(
        {"reranker": "interaction", "interaction": {"epochs": 0}, "split": {"cold_share": 0}, "base_model": "./nowhere"}
    )
    with pytest.raises(RecipeError) as caught:
        check(recipe)
    for part in ("'interaction.epochs' is 0", "'split.cold_share' is 0", "'base_model' is ./nowhere"):
        assert part in str(caught.value)


def test_a_cross_encoder_that_is_not_trained_cannot_serve() -> None:
    with pytest.raises(RecipeError, match=r"'cross_encoder\.epochs' is 0"):
        check(Recipe.model_validate({"reranker": "cross_encoder", "cross_encoder": {"epochs": 0}}))


def test_a_base_that_is_not_installed_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RecipeError, match=f"pip install {DEFAULT_BASE}"):
        check(Recipe())


@pytest.mark.parametrize("base", ["/no/such/folder", "./missing", "~/missing", "runs/old/bundle"])
def test_a_base_that_can_only_be_a_folder_must_be_there(base: str) -> None:
    with pytest.raises(RecipeError, match="there is no such folder"):
        check(Recipe(base_model=base))


@pytest.mark.parametrize("base", ["owner/name", "name"])
def test_a_base_that_may_be_a_hub_name_is_left_to_the_loader(base: str) -> None:
    check(Recipe(base_model=base))


def test_a_bundle_with_a_checkpoint_is_a_base(tmp_path: Path) -> None:
    assert base_path(str(tmp_path)) == str(tmp_path)
    (tmp_path / "checkpoint").mkdir()
    assert base_path(str(tmp_path)) == str(tmp_path / "checkpoint")
