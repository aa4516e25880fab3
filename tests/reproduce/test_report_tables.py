"""What the tables of a report say, before any format: values, letters, the best, legends, commands."""

import shlex
from dataclasses import replace

from example_results import example_results

from pyserini_compneg.commands.eval import main as eval_main
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.rows import compare_rows, make_rows
from pyserini_compneg.reproduce.report.tables import make_table, provenance_warning
from pyserini_compneg.reproduce.results import Cell, Results, Row, Section

RESULTS = Results("p", "Title", "About.", {"kind": "filmsets"}, {}, "true", ("nDCG@10",), False, ())


def section(*rows, queries=10, baseline="vanilla"):
    return Section("Union", queries, rows, baseline, {}, "qrels/union.txt")


def row(name, *cells, measures=("nDCG@10",), run="runs/{}.txt", note=""):
    has_run = any(cell.value is not None for cell in cells)
    return Row(name, "A", dict(zip(measures, cells, strict=True)), run.format(name) if has_run else None, note)


def table(*rows, results=RESULTS, **changes):
    return make_table(section(*rows, **changes), results)


def entries(made):
    return {line.name: line.entries[0] for line in made.lines}


def test_letters_name_the_rows_that_were_run_and_mark_what_they_lose_to():
    made = table(
        row("vanilla", Cell(0.2)),
        row("paper's", Cell(published=0.3)),
        row("addition", Cell(0.3, better_than=("vanilla",))),
        row("dismax", Cell(0.4, better_than=("addition", "vanilla"))),
    )
    assert [line.letter for line in made.lines] == ["a", "", "b", "c"]
    assert [entry.letters for entry in entries(made).values()] == ["", "", "a", "ab"]
    assert made.most_letters == 2
    assert made.legend["letters"] == (
        "A superscript names the methods that a value is significantly better than "
        "(paired t-test, p < 0.05, Holm's correction over all pairs of rows)."
    )


def test_letters_do_not_run_out():
    names = [f"m{number}" for number in range(60)]
    made = table(*(row(name, Cell(number / 100, better_than=names[:number])) for number, name in enumerate(names)))
    letters = [line.letter for line in made.lines]
    assert (letters[:2], letters[51:54], letters[-1]) == (["a", "b"], ["Z", "aa", "ab"], "ah")
    assert len({*letters}) == 60
    assert made.lines[-1].entries[0].letters.split(",") == letters[:-1]


def test_where_nothing_is_significant_the_legend_says_so():
    made = table(row("vanilla", Cell(0.2)), row("addition", Cell(0.3)))
    assert made.legend["letters"] == (
        "No value is significantly better than another "
        "(paired t-test, p < 0.05, Holm's correction over all pairs of rows)."
    )


def test_one_row_or_one_query_is_compared_with_nothing():
    alone = table(row("vanilla", Cell(0.2)), row("paper's", Cell(published=0.3)))
    one_query = table(row("vanilla", Cell(0.2)), row("addition", Cell(0.3)), queries=1)
    for made in (alone, one_query):
        assert not made.has_letters
        assert "letters" not in made.legend
    assert not entries(alone)["vanilla"].is_best
    assert (one_query.queries, alone.queries) == ("1 query", "10 queries")


def test_the_best_is_the_best_as_printed():
    made = table(row("vanilla", Cell(0.2), run="v"), row("b", Cell(0.30004)), row("c", Cell(0.29996)))
    assert [(entry.value, entry.is_best) for entry in entries(made).values()] == [
        ("0.200", False),
        ("0.300", True),
        ("0.300", True),
    ]
    assert made.finding == "Best nDCG@10: b, 0.300 (+0.100 against vanilla)."


def test_the_baseline_may_be_the_best():
    assert table(row("vanilla", Cell(0.2)), row("b", Cell(0.1))).finding == "Best nDCG@10: vanilla, 0.200."


def test_of_some_measures_the_lowest_is_the_best():
    results = replace(RESULTS, measures=("negated_terms", "R@100"), lower_is_better=("negated_terms",))
    measures = results.measures
    made = table(
        row("vanilla", Cell(0.02), Cell(0.5), measures=measures),
        row("filtering", Cell(0.0), Cell(0.4), measures=measures),
        results=results,
    )
    assert [[entry.is_best for entry in line.entries] for line in made.lines] == [[False, True], [True, False]]
    assert made.finding == "Best negated_terms (%): filtering, 0.00 (−2.00 against vanilla)."
    assert made.legend["lower"] == "Lower is better for negated_terms."


def test_a_row_that_is_only_published_has_no_value_and_no_command():
    made = table(row("vanilla", Cell(0.2, (0.1, 0.3), (), 0.132)), row("fusion", Cell(published=0.228)))
    ours, published = made.lines
    assert (ours.is_published_only, published.is_published_only) == (False, True)
    assert (ours.entries[0].interval, ours.entries[0].published) == ("0.100 to 0.300", "0.132")
    assert (published.entries[0].value, published.entries[0].published, published.command) == ("", "0.228", "")
    assert made.legend["published"] == "Grey: published, not run here."


def test_a_measure_of_another_row_only_is_empty():
    made = table(row("vanilla", Cell(0.2)), Row("other", "B", {}, None))
    assert entries(made)["other"].value == ""


def test_what_the_papers_print_in_percent_is_shown_in_percent_on_both_sides():
    results = replace(RESULTS, measures=("paired_accuracy", "delta_recall@1"))
    cells = [Cell(0.37093, (0.3, 0.44), (), 0.2307), Cell(-0.05)]
    made = table(row("vanilla", *cells, measures=results.measures), results=results)
    assert [column.title for column in made.columns] == ["paired_accuracy (%)", "delta_recall@1 (%)"]
    assert [column.has_paper for column in made.columns] == [True, False]
    first, second = made.lines[0].entries
    assert (first.value, first.interval, first.published, second.value) == ("37.09", "30.00 to 44.00", "23.07", "−5.00")


def test_the_same_note_is_one_footnote():
    cell = Cell(0.2)
    made = table(row("a", cell, note="x"), row("b", cell), row("c", cell, note="y"), row("d", cell, note="x"))
    assert made.notes == ("x", "y")
    assert [line.note for line in made.lines] == [1, 0, 2, 1]


def test_another_dataset_than_the_papers_is_named_and_its_figures_are_not_compared():
    results = replace(RESULTS, papers_dataset="QUEST")
    assert provenance_warning(results) == (
        "FilmSets, which is not QUEST. The paper's figures are for QUEST: beside ours, only their order can be "
        "compared, not their size."
    )
    made = table(row("vanilla", Cell(0.2, published=0.1)), results=results)
    assert made.legend["paper"] == "Paper: the published figure, for QUEST: compare the order, not the size."


def test_the_papers_own_dataset_needs_no_warning():
    results = replace(RESULTS, papers_dataset="QUEST", is_papers=True)
    assert provenance_warning(results) == ""
    made = table(row("vanilla", Cell(0.2, published=0.1)), results=results)
    assert made.legend["paper"] == "Paper: the published figure."
    assert provenance_warning(RESULTS) == ""


def test_commands_take_the_section_s_judgements_and_all_measures_that_runs_are_enough_for():
    results = replace(RESULTS, measures=("nDCG@10", "negated_terms", "R@100"))
    cells = [Cell(0.2)] * 3
    rows = [row(name, *cells, measures=results.measures) for name in ("vanilla", "it's")]
    made = table(*rows, results=results)
    start = "python -m pyserini_compneg.eval --qrels qrels/union.txt -m nDCG@10 -m R@100"
    assert made.lines[0].command == f"{start} --run runs/vanilla.txt"
    assert made.command == f"{start} \\\n    --run runs/vanilla.txt \\\n    'runs/it'\"'\"'s.txt'"
    assert made.uncomputed == (
        "negated_terms count words in the texts of documents; the command that made this report computes them from the "
        "run files, which are kept."
    )


def test_measures_that_all_need_texts_leave_no_command():
    results = replace(RESULTS, measures=("positive_terms",))
    made = table(row("vanilla", Cell(0.2), measures=results.measures), results=results)
    assert (made.command, made.lines[0].command) == ("", "")
    assert made.uncomputed.startswith("positive_terms count words")


def test_the_commands_compute_the_figures_and_letters_of_the_table(tmp_path, monkeypatch, capsys):
    qrels = {f"q{number}": {"d": 1} for number in range(8)}
    runs = {
        "vanilla": {qid: {"x": 3.0, "y": 2.0, "d": 1.0} for qid in qrels},
        "better": {qid: {"d": 3.0, "x": 2.0 + (qid == "q0") * 2, "y": 1.0} for qid in qrels},
    }
    measures = parse_measures(RESULTS.measures)
    results = {name: evaluate(qrels, run, measures) for name, run in runs.items()}
    compared = compare_rows(make_rows(results, measures, {}), results, measures, qrels, randomise=False)
    rows = []
    for one in compared:
        better = tuple(other.other for other in one.comparisons["nDCG@10"] if other.is_better)
        rows.append(row(one.run, Cell(one.values["nDCG@10"], one.intervals["nDCG@10"], better)))
    made = table(*rows, queries=len(qrels))
    for folder in ("qrels", "runs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "qrels/union.txt").write_text("".join(f"{qid} 0 d 1\n" for qid in qrels))
    for name, run in runs.items():
        lines = (f"{qid} Q0 {doc} 1 {score} t\n" for qid, found in run.items() for doc, score in found.items())
        (tmp_path / f"runs/{name}.txt").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    assert eval_main(shlex.split(made.command.replace("\\\n", ""))[3:]) == 0
    printed = capsys.readouterr().out
    assert [entry.letters for entry in entries(made).values()] == ["", "a"]
    assert "better.txt^b         8  0.9539^a" in printed
    assert entries(made)["better"].value == "0.954"
    for line in made.lines:
        assert eval_main(shlex.split(line.command)[3:]) == 0
        shown = float(capsys.readouterr().out.split()[-1])
        assert f"{shown:.3f}" == line.entries[0].value


def test_every_section_of_the_example_has_a_table():
    results = example_results(queries=5)
    made = [make_table(one, results) for one in results.sections]
    assert [one.title for one in made] == ["Set difference", "Union", "Intersection"]
    assert all(one.has_paper and one.has_letters for one in made)


def test_a_table_of_one_row_has_one_command():
    alone = table(row("vanilla", Cell(0.2)))
    assert (bool(alone.command), alone.row_commands) == (True, {})
    both = table(row("vanilla", Cell(0.2)), row("addition", Cell(0.3)), row("paper's", Cell(published=0.3), run=None))
    assert list(both.row_commands) == ["vanilla", "addition"]
