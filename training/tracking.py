"""Tracking: a training as one MLflow run with nested stages, its bundle as a registered model version.

The store is sqlite at `<root>/mlflow.db` with artifacts under `<root>/artifacts`; MLFLOW_TRACKING_URI, where set,
wins. Everything goes through a client of its own: no global MLflow state is read or left behind.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from data.errors import ToolcribError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPERIMENT = "toolcrib"
MODEL = "toolcrib"
CHALLENGER = "challenger"
CHAMPION = "champion"
BUNDLE_TAG = "toolcrib.bundle_version"
VALIDATION_TAG = "toolcrib.validation"
DEFAULT_ROOT = Path("mlruns")

_LIBRARIES = ("toolcrib", "numpy", "onnxruntime", "torch", "transformers", "sentence-transformers", "scikit-learn")
_PARAMETERS_A_CALL = 100  # MLflow's own bound on one log_batch
_DIGEST_CHARACTERS = 36  # MLflow's own bound on a dataset digest
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",  # seven retries keep a user waiting for minutes on a mistyped address
}

P = ParamSpec("P")
R = TypeVar("R")


class TrackingError(ToolcribError):
    """The tracking store cannot be opened, written or read; names the store and the reason."""


def tracking_uri(root: Path = DEFAULT_ROOT) -> str:
    """Where runs go: MLFLOW_TRACKING_URI where set, otherwise the sqlite file under `root`."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root.resolve() / 'mlflow.db'}"


def has_store(root: Path = DEFAULT_ROOT) -> bool:
    """Whether there is a store to write to that nobody has to make first; one on a server is taken to be there."""
    return "MLFLOW_TRACKING_URI" in os.environ or (root / "mlflow.db").is_file()


def open_client(root: Path = DEFAULT_ROOT) -> Any:
    """An MlflowClient on the store; its tables are made on first use. TrackingError when it cannot be reached."""
    for name, value in _QUIET.items():  # read by MLflow while it is imported
        os.environ.setdefault(name, value)
    uri = tracking_uri(root)
    try:
        if "MLFLOW_TRACKING_URI" not in os.environ:
            root.mkdir(parents=True, exist_ok=True)
        from mlflow import MlflowClient  # after the environment is set

        for noisy in ("mlflow", "alembic"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        client = MlflowClient(tracking_uri=uri, registry_uri=os.environ.get("MLFLOW_REGISTRY_URI") or uri)
        client.search_experiments(max_results=1)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # SQLAlchemy, requests and MLflow each raise their own
        raise store_failed("open", uri, error) from error
    return client


def file_digest(path: Path) -> str:
    """sha256 of a file, hexadecimal, 64 characters."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tracked(method: Callable[P, R]) -> Callable[P, R]:
    """Turn whatever the store raises into a TrackingError that names the store."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except ToolcribError:
            raise
        except Exception as error:
            run = args[0]
            assert isinstance(run, Run)
            raise store_failed(f"{method.__name__} in run {run.run_id}", run.uri, error) from error

    return call


class Run:
    """One open MLflow run: log to it, open a stage under it. Made by `track` and `stage`, never directly."""

    def __init__(self, client: Any, uri: str, experiment_id: str, run_id: str) -> None:
        self.client, self.uri, self.experiment_id, self.run_id = client, uri, experiment_id, run_id

    @contextmanager
    def stage(self, name: str) -> Iterator[Run]:
        """A nested run for one stage; ends FINISHED, FAILED on an error, or KILLED on an interrupt."""
        with _open_run(self.client, self.uri, self.experiment_id, name, {"mlflow.parentRunId": self.run_id}) as run:
            yield run

    @_tracked
    def parameters(self, values: Mapping[str, object]) -> None:
        """Log parameters; nested mappings become dotted names. A parameter cannot be changed once logged."""
        from mlflow.entities import Param

        rows = [Param(name, str(value)) for name, value in _flat(values)]
        for start in range(0, len(rows), _PARAMETERS_A_CALL):
            self.client.log_batch(self.run_id, params=rows[start : start + _PARAMETERS_A_CALL])

    @_tracked
    def metrics(self, values: Mapping[str, object], step: int = 0) -> None:
        """Log every number in `values`; nested mappings become dotted names, and what is no number is passed over.

        MLflow forbids `@` in a name: `ndcg@10` is logged as `ndcg_at_10`.
        """
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        rows = [
            Metric(name.replace("@", "_at_"), float(value), now, step)
            for name, value in _flat(values)
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        ]
        if rows:
            self.client.log_batch(self.run_id, metrics=rows)

    @_tracked
    def tags(self, values: Mapping[str, str]) -> None:
        """Set tags on the run."""
        for name, value in values.items():
            self.client.set_tag(self.run_id, name, value)

    @_tracked
    def dataset(self, name: str, source: str, sha256: str, context: str = "training") -> None:
        """Record which data went in: a dataset input, and the whole digest as tag `dataset.<name>.sha256`."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        entry = Dataset(name=name, digest=sha256[:_DIGEST_CHARACTERS], source_type="local", source=source)
        tags = [InputTag("mlflow.data.context", context)]
        self.client.log_inputs(self.run_id, datasets=[DatasetInput(entry, tags)])
        self.client.set_tag(self.run_id, f"dataset.{name}.sha256", sha256)

    @_tracked
    def figure(self, figure: Figure, name: str) -> None:
        """Store a matplotlib figure as an image; `name` is its path among the artifacts, such as `plots/rungs.png`."""
        self.client.log_figure(self.run_id, figure, name)

    @_tracked
    def artifact(self, path: Path, folder: str = "") -> None:
        """Store a file or a folder among the artifacts, under `folder`."""
        log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
        log(self.run_id, str(path), folder or None)

    @_tracked
    def document(self, values: Mapping[str, object], name: str) -> None:
        """Store a mapping as a JSON artifact."""
        self.client.log_dict(self.run_id, dict(values), name)

    @_tracked
    def text(self, text: str, name: str) -> None:
        """Store a text as an artifact; `name` is its path there."""
        self.client.log_text(self.run_id, text, name)

    @_tracked
    def register(self, bundle: Path, bundle_version: str, validation: Mapping[str, float | None]) -> str:
        """Store the bundle folder and register it as the model's newest version, alias `challenger`; gives its number.

        The files are the model: `mlflow.artifacts.download_artifacts("models:/toolcrib@challenger")` gives a folder
        that serves as it is. `validation` are the figures that promotion compares: see `training.promotion`.
        """
        self.client.log_artifacts(self.run_id, str(bundle), "bundle")
        if not self.client.search_registered_models(f"name = '{MODEL}'"):
            self.client.create_registered_model(MODEL)
        version = self.client.create_model_version(
            MODEL,
            source=f"runs:/{self.run_id}/bundle",
            run_id=self.run_id,
            tags={BUNDLE_TAG: bundle_version, VALIDATION_TAG: json.dumps(dict(validation), allow_nan=False)},
            await_creation_for=0,
        )
        self.client.set_registered_model_alias(MODEL, CHALLENGER, version.version)
        return str(version.version)


class SilentRun(Run):
    """A run that records nothing: for the processes of a distributed training that are not the first."""

    def __init__(self) -> None:
        super().__init__(client=None, uri="", experiment_id="", run_id="")

    @contextmanager
    def stage(self, name: str) -> Iterator[Run]:
        """The same silence."""
        yield self

    def parameters(self, values: Mapping[str, object]) -> None: ...

    def metrics(self, values: Mapping[str, object], step: int = 0) -> None: ...

    def tags(self, values: Mapping[str, str]) -> None: ...

    def dataset(self, name: str, source: str, sha256: str, context: str = "training") -> None: ...

    def figure(self, figure: Figure, name: str) -> None: ...

    def artifact(self, path: Path, folder: str = "") -> None: ...

    def document(self, values: Mapping[str, object], name: str) -> None: ...

    def text(self, text: str, name: str) -> None: ...

    def register(self, bundle: Path, bundle_version: str, validation: Mapping[str, float | None]) -> str:
        """Registers nothing."""
        return ""


@contextmanager
def track(root: Path = DEFAULT_ROOT, *, name: str, tags: Mapping[str, str] | None = None) -> Iterator[Run]:
    """The parent run of one training. Entering it writes to the database and to the artifact store.

    So a store that cannot be written raises TrackingError here, before any training, and not at its end.
    """
    client, uri = open_client(root), tracking_uri(root)
    try:
        experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            # a server has its own place for artifacts; our own store keeps them next to the database
            place = None if "MLFLOW_TRACKING_URI" in os.environ else (root.resolve() / "artifacts").as_uri()
            experiment_id = client.create_experiment(EXPERIMENT, artifact_location=place)
        else:
            experiment_id = experiment.experiment_id
    except Exception as error:
        raise store_failed("open the experiment in", uri, error) from error
    with _open_run(client, uri, experiment_id, name, tags or {}) as run:
        run.document(_environment(), "environment.json")
        yield run


@contextmanager
def _open_run(client: Any, uri: str, experiment_id: str, name: str, tags: Mapping[str, str]) -> Iterator[Run]:
    try:
        run_id = client.create_run(experiment_id, run_name=name, tags=dict(tags)).info.run_id
    except Exception as error:
        raise store_failed(f"start run '{name}' in", uri, error) from error
    status = "FAILED"
    try:
        yield Run(client, uri, experiment_id, run_id)
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        client.set_terminated(run_id, status)


def _environment() -> dict[str, object]:
    versions = {}
    for library in _LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "platform": platform.platform(), "libraries": versions}


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def store_failed(doing: str, uri: str, error: Exception) -> TrackingError:
    """What to raise where the store raised `error`; without the password that its address may hold."""
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return TrackingError(
        f"cannot {doing} the tracking store {_without_password(uri)}: {reason.replace(uri, _without_password(uri))} "
        "(check that it exists and can be written, or point MLFLOW_TRACKING_URI at another)"
    )


def _without_password(uri: str) -> str:
    scheme, separator, rest = uri.partition("://")
    credentials, at, host = rest.rpartition("@")
    return f"{scheme}{separator}***@{host}" if at and credentials else uri
