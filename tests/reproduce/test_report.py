"""The files of a report: which there are, that they are whole, and that nothing in them is left to chance."""

import importlib.util
import struct
import sys
from dataclasses import replace

import pytest
from example_results import example_results

from pyserini_compneg.errors import OutputError
from pyserini_compneg.reproduce.report import check_packages, write_report
from pyserini_compneg.reproduce.results import Results

NOTHING = Results("p", "Nothing", "Of nothing.", {}, {}, "true", ("nDCG@10",), True, ())


@pytest.fixture(scope="module")
def results():
    """One section and one curve."""
    whole = example_results(queries=3)
    return replace(whole, sections=whole.sections[1:2])


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports") / "new" / "out"
    write_report(results, folder)
    return folder


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_has_all_its_files_and_no_other(folder):
    plots = {f"figures/{name}.png" for name in ("section-1-bars", "section-1-differences", "curve-1")}
    assert files(folder).keys() == {"report.html", "report.md", "tables.tex"} | plots


def test_the_same_results_make_the_same_bytes_over_an_older_report_whatever_the_user_s_settings_of_plots_are(
    results, folder, tmp_path
):
    import matplotlib

    (tmp_path / "report.html").write_text("older")
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "text.usetex": True, "savefig.dpi": 30}):
        write_report(results, tmp_path)
        assert matplotlib.rcParams["font.size"] == 20
    assert files(tmp_path) == files(folder)
    assert dict(matplotlib.rcParams) == before


def test_plots_are_whole_pictures_of_some_size(folder):
    for path in (folder / "figures").iterdir():
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert data.endswith(b"IEND\xaeB`\x82")
        width, height = struct.unpack(">II", data[16:24])
        assert (width, height >= 300) == (1800, True)
        assert b"Software" not in data


def test_results_without_sections_curves_or_examples_make_a_report(tmp_path):
    write_report(NOTHING, tmp_path)
    assert files(tmp_path).keys() == {"report.html", "report.md", "tables.tex"}
    assert b"Nothing" in files(tmp_path)["report.html"]


def test_a_failure_leaves_an_older_report_as_it_was(results, tmp_path):
    broken = replace(results.sections[0], per_query={name: {"q": {}} for name in results.sections[0].per_query})
    (tmp_path / "report.html").write_text("older")
    with pytest.raises(KeyError):
        write_report(replace(results, sections=(broken,)), tmp_path)
    assert files(tmp_path) == {"report.html": b"older"}


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_before_anything_is_written(package, monkeypatch, tmp_path):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(OutputError) as error:
        write_report(NOTHING, tmp_path)
    assert str(error.value) == f"a report needs the package {package}; pip install 'pyserini_compneg[report]'"
    with pytest.raises(OutputError):
        check_packages()
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("package", "code", "reason"),
    [
        ("jinja2", "raise ImportError('a stub\\nof two lines')", "a stub"),
        ("matplotlib", "raise RuntimeError", "RuntimeError"),
        ("matplotlib", "", "No module named 'matplotlib.figure'; 'matplotlib' is not a package"),
        ("jinja2", "", "module 'jinja2' has no attribute 'Environment'"),
    ],
)
def test_a_broken_package_is_named_before_anything_is_written(package, code, reason, monkeypatch, tmp_path):
    (tmp_path / f"{package}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(OutputError) as error:
        check_packages()
    assert str(error.value) == (
        f"a report needs the package {package}, which cannot be imported: {reason}; pip install "
        "'pyserini_compneg[report]'"
    )


def test_plots_of_an_earlier_report_are_removed_and_nothing_else(results, tmp_path):
    (tmp_path / "figures").mkdir()
    for name in ("section-7-bars.png", "curve-2.png", "section-1-bars.png", "mine.png", "curve-2.png.bak"):
        (tmp_path / "figures" / name).write_text("older")
    write_report(results, tmp_path)
    plots = {"section-1-bars.png", "section-1-differences.png", "curve-1.png"}
    assert {path.name for path in (tmp_path / "figures").iterdir()} == plots | {"mine.png", "curve-2.png.bak"}


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError) as error:
        write_report(NOTHING, tmp_path / "out")
    assert str(error.value) == f"{tmp_path / 'out'}: cannot be made: file exists; choose another place with --report"
