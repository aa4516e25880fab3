from example_results import example_results

from pyserini_compneg.reproduce.report import write_report


def test_a_report_has_all_its_files(tmp_path):
    write_report(example_results(), tmp_path / "out")
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    plots = {f"figures/section-{number}-{kind}.png" for number in (1, 2, 3) for kind in ("bars", "differences")}
    assert names == {"report.html", "report.md", "tables.tex", "figures/curve-1.png"} | plots


def test_the_same_results_make_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        write_report(example_results(), tmp_path / name)
    for path in (tmp_path / "one").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "other" / path.relative_to(tmp_path / "one")).read_bytes()
