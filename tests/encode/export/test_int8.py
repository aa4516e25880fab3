"""Eight bits for embeddings, alone and shared with a decoder, on graphs of one embedding and two matrix products; and
names of exported graphs."""

import pytest

onnx = pytest.importorskip("onnx", reason="graphs are built with onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="graphs are run by onnxruntime")
torch = pytest.importorskip("torch", reason="export is torch's")

import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from refusals import refusal  # noqa: E402

from pyserini_compneg.encode.networks import graph as exporting  # noqa: E402
from pyserini_compneg.encode.networks.int8 import int8_model, rounded  # noqa: E402
from pyserini_compneg.support import onnx_sessions  # noqa: E402
from pyserini_compneg.support.errors import EncodingError  # noqa: E402
from pyserini_compneg.support.onnx_sessions import open_session  # noqa: E402

TOKENS, WIDTH, FIRST = 40, 8, 25
IDS = np.array([[0, 39, 7], [24, 25, 7]])


@pytest.fixture
def table():
    values = np.random.default_rng(0).normal(size=(TOKENS, WIDTH)).astype(np.float32)
    values[7] = 0
    return values


def write_graph(path, table, decoder):
    """Logits of the embeddings of ``ids``, by a decoder in two parts."""
    parts = {"first": decoder[:FIRST].T, "second": decoder[FIRST:].T}
    weights = {"table": table, **{name: np.ascontiguousarray(part) for name, part in parts.items()}}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["states"], axis=0)]
    nodes += [helper.make_node("MatMul", ["states", name], [f"logits_{name}"], name=name) for name in parts]
    nodes.append(helper.make_node("Concat", [f"logits_{name}" for name in parts], ["logits"], axis=-1))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "tokens", TOKENS])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def logits(model):
    return open_session(model.SerializeToString(), threads=1).run(["logits"], {"ids": IDS})[0]


def tables(model):
    """The dimensions of what has more than one dimension, by type."""
    return sorted((entry.data_type, *entry.dims) for entry in model.graph.initializer if len(entry.dims) > 1)


class _Picking(torch.nn.Module):
    """The weights of a text are those of its first and last tokens, so torch's exporter names values `select`."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", torch.from_numpy(table))

    def forward(self, input_ids, token_type_ids, attention_mask):
        rows = self.table[input_ids] * attention_mask[:, :, None]
        return rows.select(1, 0) + rows.select(1, 1)


@pytest.mark.slow
def test_names_of_torchs_exporter_are_left_alone(tmp_path, table):
    pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
    exporting.write_graph(_Picking(table).eval(), "fp32", tmp_path / "model.onnx")
    session = open_session(tmp_path / "model.onnx", threads=1)
    inputs = {"input_ids": IDS, "token_type_ids": IDS * 0, "attention_mask": IDS * 0 + 1}
    columns, weights, rows = session.run(["output_idx", "output_weights", "output_row"], inputs)
    found = np.zeros((2, WIDTH), np.float32)
    found[rows, columns] = weights
    np.testing.assert_allclose(found, table[IDS[:, 0]] + table[IDS[:, 1]], rtol=1e-6)


class _Branching(_Picking):
    """A network that looks at its values, as Longformer does, so it cannot be exported."""

    def forward(self, input_ids, token_type_ids, attention_mask):
        found = super().forward(input_ids, token_type_ids, attention_mask)
        return found if (input_ids > 7).any().item() else -found


@pytest.mark.slow
def test_a_network_that_cannot_be_exported_is_one_line(tmp_path, table, capfd):
    pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
    said = refusal(exporting.write_graph, _Branching(table), "fp32", tmp_path / "model.onnx", error=EncodingError)
    assert said.startswith("the model cannot be exported: Could not guard on data-dependent expression ")
    assert said.endswith("; choose --backend torch") and "\n" not in said
    assert capfd.readouterr() == ("", "")


def test_products_that_share_their_weights(tmp_path):
    """As layers of ALBERT do; twice the same square matrix, against the same products with whole numbers."""
    drawn = np.random.default_rng(1)
    table, square = drawn.normal(size=(TOKENS, WIDTH)), drawn.normal(size=(WIDTH, WIDTH))
    nodes = [helper.make_node("Gather", ["table", "ids"], ["states_0"], axis=0)]
    nodes += [helper.make_node("MatMul", [f"states_{i}", "square"], [f"states_{i + 1}"], name=f"m{i}") for i in (0, 1)]
    graph = helper.make_graph(
        nodes,
        "shared",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("states_2", TensorProto.FLOAT, ["batch", "tokens", WIDTH])],
        [numpy_helper.from_array(v.astype(np.float32), n) for n, v in (("table", table), ("square", square))],
    )
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "dense.onnx")
    model = int8_model(tmp_path / "dense.onnx", tmp_path / "int8.onnx", "ids")
    onnx.checker.check_model(model)
    assert tables(model) == [(TensorProto.UINT8, WIDTH, WIDTH), (TensorProto.INT8, TOKENS, WIDTH)]
    (found,) = open_session(model.SerializeToString(), threads=1).run(["states_2"], {"ids": IDS})
    expected = table[IDS] @ square @ square
    assert np.abs(found - expected).max() <= 0.03 * np.abs(expected).max()


@pytest.mark.parametrize("tied", [True, False])
def test_one_table_serves_embeddings_and_a_decoder_that_is_tied(tmp_path, table, tied):
    decoder = table if tied else table[::-1].copy()
    write_graph(tmp_path / "dense.onnx", table, decoder)
    model = int8_model(tmp_path / "dense.onnx", tmp_path / "int8.onnx", "ids")
    onnx.checker.check_model(model)
    parts = [] if tied else [(TensorProto.INT8, WIDTH, TOKENS - FIRST), (TensorProto.INT8, WIDTH, FIRST)]
    assert tables(model) == [*parts, (TensorProto.INT8, TOKENS, WIDTH)]

    embeddings, weights = ((whole * scales[:, None]) for whole, scales in map(rounded, (table, decoder)))
    states = embeddings[IDS]
    step = (max(states.max(), 0) - min(states.min(), 0)) / 255  # of the activations, which are rounded as they come
    largest = np.abs(weights).sum(1) * step
    assert (np.abs(logits(model) - states @ weights.T) <= largest).all()


def test_rounding_errs_by_half_a_step_at_most(table):
    whole, scales = rounded(table)
    assert (np.abs(whole * scales[:, None] - table) <= scales[:, None] / 2 + 1e-7).all()
    assert np.abs(whole).max(1).tolist() == [0 if number == 7 else 127 for number in range(TOKENS)]


@pytest.mark.parametrize(
    ("has_vnni", "providers"), [(True, ["CPUExecutionProvider"]), (False, ["CUDAExecutionProvider"])]
)
def test_how_sessions_run(monkeypatch, has_vnni, providers):
    opened = {}
    monkeypatch.setattr(onnx_sessions, "adds_int8_exactly", lambda: has_vnni)
    monkeypatch.setattr(
        onnxruntime, "InferenceSession", lambda _, options, **given: opened.update(given, options=options)
    )
    open_session(b"", 1, providers)
    try:
        precise = opened["options"].get_session_config_entry("session.x64quantprecision")
    except RuntimeError:
        precise = None
    assert precise == (None if has_vnni else "1")
    assert opened["disabled_optimizers"] == (["SkipLayerNormFusion"] if providers == ["CPUExecutionProvider"] else [])
