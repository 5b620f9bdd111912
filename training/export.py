"""Export: PyTorch models -> ONNX graphs, fused and int8 where they stay within bounds, with parity figures."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

OPSET = 17


class EncoderGraph(nn.Module):
    """(input_ids, attention_mask) -> unit mean-pooled vector (n, d) and last-layer token states (n, length, d)."""

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        states = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=-1), states


def export_graph(
    model: nn.Module,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Mapping[int, str]],
    axes: Mapping[str, Mapping[int, str]],
    path: Path,
) -> None:
    """Trace `model` on `inputs` and write ONNX; `axes` and `outputs` name the dynamic axes of both sides."""
    model.eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={**{k: dict(v) for k, v in axes.items()}, **{k: dict(v) for k, v in outputs.items()}},
            opset_version=OPSET,
            dynamo=False,
        )


def fuse(source: Path, target: Path, *, heads: int, hidden: int) -> None:
    """ONNX Runtime's BERT fusions (attention, layer norm, GELU); same results within float tolerance."""
    from onnxruntime.transformers import optimizer

    model = optimizer.optimize_model(
        str(source), model_type="bert", num_heads=heads, hidden_size=hidden, opt_level=0, use_gpu=False
    )
    model.save_model_to_file(str(target))


def quantize(source: Path, target: Path) -> None:
    """Dynamic int8, one scale a channel, seven bits of range so that CPUs without VNNI cannot saturate."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder, _without_advice():
        cleaned = Path(folder) / "graph.onnx"
        onnx.save(onnx.load(str(source)), str(cleaned))
        quantize_dynamic(
            str(cleaned),
            str(target),
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Attention", "Gather", "EmbedLayerNormalization"],
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )


@contextmanager
def _without_advice() -> Iterator[None]:
    """Without ONNX Runtime's standing advice, on the root logger, to run a preprocessing that these graphs have had."""

    def is_news(record: logging.LogRecord) -> bool:
        return "pre-processing" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(is_news)
    try:
        yield
    finally:
        root.removeFilter(is_news)
