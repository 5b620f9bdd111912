"""A file that a user writes for an import, as a model; all that is wrong with it is told at once, by its lines."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from data.errors import InputError
from data.strict_yaml import read_yaml

M = TypeVar("M", bound=BaseModel)


def read_user_file(model: type[M], path: Path, what: str) -> M:
    """The YAML file as a `model`; an empty one is a model with its defaults.

    Raises InputError that calls the file no `what` and lists its problems.
    """
    document, lines = read_yaml(path)
    try:
        return model.model_validate({} if document is None else document)
    except ValidationError as error:
        problems = []
        for found in error.errors(include_url=False, include_input=False):
            place = tuple(found["loc"])
            known = next((place[:size] for size in range(len(place), 0, -1) if place[:size] in lines), ())
            line = f"line {lines[known]}, " if known else ""
            problems.append(f"{line}{'.'.join(map(str, place)) or 'the file'}: {found['msg']}")
    raise InputError(
        f"these are no {what}: {'; '.join(dict.fromkeys(problems))}",
        source=str(path),
        hint="docs/logs.md shows the form",
    )
