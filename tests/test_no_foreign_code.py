"""No model brings code of its own: every call that loads one says so, whatever the default of the library is."""

import ast
from pathlib import Path

import pyserini_compneg

PACKAGE = Path(pyserini_compneg.__file__).parent
LOADERS = {"from_pretrained", "SentenceTransformer", "CrossEncoder"}


def test_every_call_that_loads_a_model_refuses_its_code():
    calls = [
        (path.name, node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] in LOADERS
    ]
    assert len(calls) >= 7
    for name, call in calls:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert given.get("trust_remote_code") == "False", f"{name}:{call.lineno}"
