"""What may import what: the floors of the package, read from its source, and what importing it loads."""

import ast
import graphlib
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from pyserini_compneg.commands.main import COMMANDS

PACKAGE = "pyserini_compneg"
ROOT = Path(__file__).parents[1] / PACKAGE

FLOORS = (
    ("support",),
    ("expression",),
    ("reading",),
    ("compose",),
    ("lucene",),
    ("documents",),
    ("encode",),
    ("index", "search", "eval"),
    ("baselines", "topics"),
    ("display",),  # up to here the engine, which knows nothing of what stands above it
    ("cluster", "lab"),
    ("integrations", "serve"),  # nothing imports the ones, and only its command the other
)
# Former homes of modules, for imports that the pages showed once.
MOVED = {"explaining"}
JAVA_FLOORS = {"blocks": 0, "index": 1, "search": 2, "update": 2, "": 3}
TORCH = {"encode.networks", "lab.training"}
MODEL_PACKAGES = {
    *("torch", "transformers", "onnxruntime", "onnx", "tokenizers", "safetensors", "huggingface_hub", "numpy"),
    *("sentence_transformers",),
}
JAVA = {"jnius", "jnius_config", "pyserini"}
HOSTS = {"pyserini": "pyserini", "pyterrier": "pyterrier", "mteb": "mteb", "langchain": "langchain_core"}


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def imports(module):
    """The modules that a module imports, wherever in its source, those for type checkers only included."""
    for node in ast.walk(SOURCES[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in SOURCES else node.module


def part(module):
    """``search`` for ``pyserini_compneg.topics.topic_runs``; ``None`` for the package itself."""
    names = module.split(".")
    return names[1] if len(names) > 1 else None


ARROWS = sorted({(module, name) for module in SOURCES for name in imports(module)})
OUR_ARROWS = [(module, name) for module, name in ARROWS if name.split(".")[0] == PACKAGE]
FLOOR_OF = {name: height for height, names in enumerate(FLOORS) for name in names}


def floor(module):
    """The package itself, which offers names of all floors, is above them; then come commands, then what runs them."""
    if is_main(module):
        return len(FLOORS) + 2
    return len(FLOORS) + 1 if part(module) == "commands" else FLOOR_OF.get(part(module), len(FLOORS))


@cache
def is_main(module):
    """A module that is run by its own name."""
    return '__name__ == "__main__"' in ast.unparse(SOURCES[module]).replace("'", '"')


def test_every_module_has_a_floor():
    assert {part(module) for module in SOURCES if floor(module) < len(FLOORS)} == FLOOR_OF.keys()
    rooms = {part(module) for module in SOURCES if not is_main(module)} - MOVED
    assert rooms == {*FLOOR_OF, None, "commands"}
    assert len(OUR_ARROWS) > 50


def test_no_arrow_points_up():
    upward = [
        f"{module} -> {name}" for module, name in OUR_ARROWS if part(module) is not None and floor(name) > floor(module)
    ]
    assert upward == []


def test_a_module_that_is_run_only_runs_its_command():
    mains = [module for module in SOURCES if is_main(module)]
    assert {part(module) for module in mains} == {"__main__", "encode", "eval", "index", "search"}
    for module in mains:
        assert [part(name) for name in imports(module) if name.split(".")[0] == PACKAGE] == ["commands"]
        assert [name for _, name in OUR_ARROWS if name == module] == []


def test_no_cycle_between_modules():
    """Imports inside functions count: one that hides a cycle does not break it."""
    graph = {module: {name for name in imports(module) if name in SOURCES} for module in SOURCES if part(module)}
    graphlib.TopologicalSorter(graph).prepare()


def test_nothing_imports_what_is_for_a_host():
    assert {part(module) for module, name in OUR_ARROWS if part(name) == "integrations"} == {"integrations"}
    found = {(module.rpartition(".")[2], name.split(".")[0]) for module, name in ARROWS}
    hosts = {(module, name) for module, name in found if name in HOSTS.values()}
    assert hosts - {("prebuilt", "pyserini")} == set(HOSTS.items())  # the list of prebuilt indexes is Pyserini's


def test_only_the_gate_touches_java():
    found = {module for module, name in ARROWS if name.split(".")[0] in JAVA}
    assert {part(module) for module in found} == {"lucene", "integrations"}
    assert {module for module in found if part(module) != "lucene"} == {f"{PACKAGE}.integrations.pyserini"}


def test_no_java_package_imports_one_above_it():
    arrows = set()
    for source in (ROOT.parent / "java").glob("*/io/compneg/**/*.java"):
        text = source.read_text(encoding="utf-8")
        (package,) = re.findall(r"^package io\.compneg\.?(\w*);", text, re.MULTILINE)
        arrows |= {(package, name) for name in re.findall(r"\bio\.compneg\.(?:(\w+)\.)?[A-Z]", text)} - {
            (package, package)
        }
    assert {package for package, _ in arrows} == JAVA_FLOORS.keys() - {"blocks"}
    assert [arrow for arrow in arrows if JAVA_FLOORS[arrow[1]] >= JAVA_FLOORS[arrow[0]]] == []


def test_only_what_runs_torch_imports_it():
    found = {module.removeprefix(f"{PACKAGE}.") for module, name in ARROWS if name.split(".")[0] == "torch"}
    assert found
    assert {name for name in found if not any(f"{name}.".startswith(f"{part}.") for part in TORCH)} == set()


def test_models_know_nothing_of_what_is_done_with_them():
    """Nor of Java: a checkpoint can be exported where no index is."""
    models = tuple(f"{PACKAGE}.encode.{name}" for name in ("models", "networks", "export"))
    below = {name for module, name in OUR_ARROWS if module.startswith(models) and not name.startswith(models)}
    assert {part(name) for name in below} <= {None, *FLOORS[0]}


def exported():
    """The names that each package's ``__init__`` exports."""
    for path in ROOT.rglob("__init__.py"):
        for node in SOURCES[module_name(path)].body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                yield module_name(path), set(ast.literal_eval(node.value))


EXPORTED = dict(exported())


def test_the_lab_uses_public_names_of_the_engine():
    """What any user may import: names that an ``__init__`` exports, and the modules of ``support``."""
    lab = f"{PACKAGE}.lab"
    hidden = {
        f"{module}: {node.module}.{alias.name}"
        for module in SOURCES
        if module.startswith(lab)
        for node in ast.walk(SOURCES[module])
        if isinstance(node, ast.ImportFrom) and not node.module.startswith((lab, f"{PACKAGE}.support"))
        if node.module.split(".")[0] == PACKAGE
        for alias in node.names
        if alias.name not in EXPORTED.get(node.module, ())
    }
    assert hidden == set()


SECTIONS = re.compile(r"^(Args|Returns|Raises|Attributes|Yields):$", re.MULTILINE)


def definitions(body, public, outer=True):
    """Classes and functions, and whether an ``__init__`` exports each, or the class that it belongs to."""
    names = set().union(*EXPORTED.values())
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            is_public = not node.name.startswith("_") and (node.name in names if outer else public)
            yield node, is_public, outer
            if isinstance(node, ast.ClassDef):
                yield from definitions(node.body, is_public, outer=False)


def test_docstrings_are_written_for_their_readers():
    """Users read those of exported names. Others are for readers of the code, who see names and types."""
    faults = []
    for module, source in SOURCES.items():
        for node, is_public, outer in definitions(source.body, public=False):
            docstring = ast.get_docstring(node) or ""
            if (is_public and outer and not docstring) or (not is_public and SECTIONS.search(docstring)):
                faults.append(f"{module}:{node.lineno} {node.name}")
    assert faults == []


def test_evaluation_does_not_know_of_search():
    assert [arrow for arrow in OUR_ARROWS if part(arrow[0]) == "eval" and part(arrow[1]) in ("search", "lucene")] == []


def loaded(statement):
    """The modules that a fresh interpreter has loaded after a statement."""
    script = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert answer.stderr == ""
    return set(json.loads(answer.stdout))


def test_importing_starts_no_machine_and_loads_nothing_heavy():
    rooms = ["topics.batch", "search", "index", "eval", "encode", "encode.models", "lab.training"]
    rooms += ["lab.experiments.report", "display", "baselines"]
    rooms.append("cluster")
    commands = ["main", "query_flags", "explain"]
    modules = [f"{PACKAGE}.{room}" for room in (*rooms, *(f"commands.{name}" for name in commands))]
    every_name = f"[getattr({PACKAGE}, name) for name in dir({PACKAGE})]"
    found = loaded(f"import {', '.join(modules)}; from {PACKAGE} import *; import {PACKAGE}; {every_name}")
    heavy = {"lark", "ray", "rich", "sklearn", "scipy", "matplotlib", "openai", *JAVA, *MODEL_PACKAGES}
    assert PACKAGE in found
    assert found & heavy == set()


def test_no_help_loads_what_only_the_work_needs():
    helps = "; ".join(f"main([{name!r}, '-h'])" for name in COMMANDS)
    script = f"import contextlib, io\nfrom {PACKAGE}.commands.main import main\n"
    heavy = {
        "ir_measures",
        "ray",
        "jnius",
        "pyserini",
        "matplotlib",
        "rich",
        "pydantic",
        "fastapi",
        "uvicorn",
        "mcp",
        *MODEL_PACKAGES,
    }
    helps = f"with contextlib.redirect_stdout(io.StringIO()): {helps}; main(['--version'])"
    assert loaded(script + helps) & heavy == set()


def test_the_engine_reads_no_settings_files():
    modules = loaded("from pyserini_compneg import encode, eval, index, search")
    assert modules & {"pydantic", "yaml"} == set()


def test_what_runs_models_loads_them_only_when_one_is_run():
    modules = loaded(
        "import pyserini_compneg.encode.export, pyserini_compneg.encode.neural, pyserini_compneg.encode.corpus"
    )
    assert modules & (MODEL_PACKAGES - {"numpy"}) == set()


def test_the_server_loads_no_torch_and_no_tools_that_it_was_not_asked_for():
    modules = loaded("import pyserini_compneg.serve.server")
    assert modules & {"mcp", "torch", "transformers", "sklearn", "pyserini", "rich", "scipy"} == set()


@pytest.mark.slow
def test_the_commands_load_no_model_for_bm25(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": "d", "contents": "a bird"}\n')
    (tmp_path / "t.tsv").write_text("1\tbird NOT bat\n")
    script = f"""
import contextlib, io
from pyserini_compneg.commands.index import main as index
from pyserini_compneg.commands.search import main as search
place = {str(tmp_path)!r}
with contextlib.redirect_stderr(io.StringIO()):
    assert index(["--collection", f"{{place}}/c.jsonl", "--index", f"{{place}}/i"]) == 0
assert search(["--index", f"{{place}}/i", "--topics", f"{{place}}/t.tsv", "--output", f"{{place}}/r.txt"]) == 0
"""
    modules = loaded(script)
    assert "jnius" in modules
    not_needed = {"rich", "sklearn", "pyserini.encode", "pyserini.search", *MODEL_PACKAGES}
    assert modules & {*not_needed, f"{PACKAGE}.encode.neural", f"{PACKAGE}.encode.networks.graph"} == set()
    assert (tmp_path / "r.txt").read_text().startswith("1 Q0 d 1 ")
