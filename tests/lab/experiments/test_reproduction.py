import json

import pytest
from film_set import write_film_set
from refusals import refusal
from wordnet_files import write_wordnet

from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.runs import read_run
from pyserini_compneg.index import build_index
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.experiments.experiment import Experiment
from pyserini_compneg.lab.experiments.protocol import read_protocol
from pyserini_compneg.lab.experiments.report import write_report
from pyserini_compneg.lab.experiments.results import write_results
from pyserini_compneg.lab.experiments.run_folder import Engine, RunOptions
from pyserini_compneg.support.errors import IndexFormatError, InputError, OutputError


def per_query(section):
    return {row.name: row.per_query for row in section.ran}


def test_the_figures_are_those_of_the_run_files(run, dataset, tmp_path):
    results = run()
    assert [section.plan.title for section in results.sections] == ["Set difference", "Atoms"]
    assert (results.dataset["split"], results.dataset["documents"], results.is_papers) == ("dev", 24, False)
    differences = results.sections[0]
    assert [row.name for row in differences.rows] == ["vanilla", "ignore", "disentangled", "elsewhere"]
    assert [row.name for row in differences.ran] == ["vanilla", "ignore", "disentangled"]
    qrels = {t.qid: dataset.qrels("dev")[t.qid] for t in dataset.topics("dev") if t.group == "_ that are not _"}
    assert differences.queries == len(qrels) > 2
    for row in differences.rows[:3]:
        run_file = read_run(tmp_path / "report" / row.path)
        assert row.per_query == evaluate(qrels, run_file, parse_measures(["nDCG@10", "R@100"]))
    elsewhere = differences.rows[3]
    assert (elsewhere.path, elsewhere.figures, elsewhere.published(1)) == (None, {}, 0.9)
    assert differences.rows[1].plan.note == "The negation is left out."
    ignore, disentangled = (row.figures["nDCG@10"] for row in differences.rows[1:3])
    assert disentangled.value > ignore.value
    assert "ignore" in disentangled.better_than() and "disentangled" not in ignore.better_than()


def test_both_p_values_are_in_the_json(run, tmp_path):
    results = run()
    write_results(results, tmp_path / "results.json")
    rows = json.loads((tmp_path / "results.json").read_text())["sections"][0]["rows"]
    against = rows[2]["cells"]["nDCG@10"]["against"]["ignore"]
    computed = results.sections[0].rows[2].figures["nDCG@10"].against["ignore"]
    assert against == {
        "difference": computed.difference,
        "p": {"raw": computed.t_test.raw, "holm": computed.t_test.holm},
    }
    cells = [row["cells"]["nDCG@10"] for row in rows]
    assert any(one["p"]["raw"] < one["p"]["holm"] for cell in cells for one in cell["against"].values())
    assert rows[3]["cells"]["nDCG@10"]["against"] == {}


def test_examples_show_what_made_the_difference(run):
    results = run()
    best = next(example for example in results.examples if example.method == "disentangled")
    assert best.value > best.baseline_value
    assert " NOT " in best.expression
    assert {term for term, _ in best.positive} and all(weight > 0 for _, weight in best.positive)
    assert best.negative and all(weight < 0 for _, weight in best.negative)
    assert all(title.split()[0] in ("red", "green", "blue") for title in (*best.gained, *best.lost))
    assert not run(("examples: 1", "examples: 0")).examples


def test_queries_without_a_result_are_one_warning_for_each_row(run, tmp_path, caplog):
    folder = write_film_set(tmp_path / "unknown")
    queries = (folder / "dev.jsonl").read_text()
    (folder / "dev.jsonl").write_text(queries.replace("<mark>spy films</mark>", "<mark>zebras</mark>"))
    results = run(dataset=open_dataset(folder))  # the wording still has the other words
    rows = [(row.name, section.plan.title) for section in results.sections for row in section.ran]
    said = [message for message in caplog.messages if "no result" in message]
    assert [message.split(":")[0] for message in said] == [f"row {name!r} of {title!r}" for name, title in rows[1:]]
    assert said[0].endswith(
        "3 of 6 queries have no result, such as q18: no document has its words, or NOT takes them away"
    )


def test_what_a_row_does_not_say_is_in_the_settings_or_nowhere(run):
    assert "None" not in run().settings["operators, where a row does not say"]


def test_too_few_queries_for_a_curve_are_known_before_anything_is_run(run, dataset, tmp_path, monkeypatch):
    monkeypatch.setattr("pyserini_compneg.lab.experiments.run_folder.check_dense_model", lambda name: None)
    count = sum(topic.group == "_ that are not _" for topic in dataset.topics("dev"))
    curve = ("sections:", "interference: {section: Set difference, bins: 9}\nsections:")
    message = refusal(run, curve, error=InputError)
    assert message == f"Set difference: {count} judged queries are too few for 9 bins"
    assert not (tmp_path / "report" / "runs").exists()


def test_a_query_whose_scores_overflow_is_named(run, tmp_path):
    folder = write_film_set(tmp_path / "films")
    wide = " AND ".join(["red spy films with war"] * 14)
    line = {"qid": "wide", "query": "wide", "expression": wide, "docs": ["D0"], "metadata": {"template": "_"}}
    with open(folder / "dev.jsonl", "a") as handle:
        handle.write(json.dumps(line) + "\n")
    fusion = ("{name: atomic, method: operators}", "{name: atomic, method: score-fusion}")
    message = refusal(run, fusion, dataset=open_dataset(folder), error=IndexFormatError)
    assert message.startswith("query wide: ")
    assert message.endswith("a score is beyond 3.4e38: the query has too large weights or too many conjuncts")


def test_each_engine_has_its_own_index(run, dataset, tmp_path, caplog):
    """Of one encoder, too: the second index lacks half of the documents."""
    lines = dataset.collection.read_text().splitlines(keepends=True)
    (tmp_path / "half.jsonl").write_text("".join(lines[:12]))
    build_index(dataset.collection, tmp_path / "all")
    build_index(tmp_path / "half.jsonl", tmp_path / "half")
    engines = [Engine("bm25", tmp_path / name, name) for name in ("all", "half")]
    differences, atoms = run(engines=engines).sections
    names = [row.name for row in differences.rows]
    assert (names[:3], names[-1]) == (["vanilla [all]", "vanilla [half]", "ignore [all]"], "elsewhere")
    assert not (tmp_path / "report" / "indexes").exists()
    (warning,) = {record.getMessage() for record in caplog.records if "lacks" in record.getMessage()}
    assert warning.startswith(f"{tmp_path / 'half'}: lacks 12 of 24 judged documents, 'D")
    both = [row.figures["R@100"].value for row in atoms.rows]
    alone = [run(engines=[one], folder=tmp_path / f"alone-{one.label}") for one in engines]
    assert both == [results.sections[1].rows[0].figures["R@100"].value for results in alone]
    assert both[0] > both[1]


def test_an_index_of_other_documents(run, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"id": "elsewhere", "contents": "a spy film"}\n')
    build_index(tmp_path / "other.jsonl", tmp_path / "index")
    message = refusal(run, engines=[Engine("bm25", tmp_path / "index")], error=InputError)
    assert message.startswith(f"{tmp_path / 'index'}: none of ")
    assert message.endswith(" for one; it is an index of another collection")


def test_a_report_overwrites_no_data(run, dataset, tmp_path):
    build_index(dataset.collection, tmp_path / "index")
    before = sorted((tmp_path / "index").iterdir())
    for folder, reason in (
        (tmp_path / "index", "is an index or no folder"),
        (dataset.folder, f"would overwrite {dataset.folder}"),
    ):
        message = refusal(run, folder=folder, error=OutputError)
        assert message == f"{folder}: {reason}; choose another place with --report"
    assert sorted((tmp_path / "index").iterdir()) == before


def test_what_cannot_be_written_names_report(run, tmp_path):
    run()
    for path in (tmp_path / "report" / "qrels").iterdir():
        path.unlink()
        path.mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        run()
    (tmp_path / "report" / "runs").rename(tmp_path / "report" / "before")
    (tmp_path / "report" / "runs").symlink_to("/proc/self")
    with pytest.raises(OutputError, match="; choose another place with --report$"):
        run()


NO_TEMPLATE = ": split dev: no query has the template 'scope edit', which is not one of QUEST's"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[filmsets]", "[quest]"), "{} is of the kind filmsets; protocol two is for: quest"),
        (("[test, dev]", "[test]"), "{}: none of the protocol's splits (test); choose one with --split: dev"),
        (("templates: [_]", "templates: [scope edit]"), "protocol two, section 'Atoms': {}" + NO_TEMPLATE),
    ],
)
def test_what_cannot_be_run(run, dataset, change, message, tmp_path):
    assert refusal(run, change, error=InputError) == message.format(dataset.folder)
    assert not (tmp_path / "report" / "indexes").exists()


def test_sections_without_queries_are_left_out(run, tmp_path):
    folder = write_film_set(tmp_path / "films")
    lines = [line for line in (folder / "dev.jsonl").read_text().splitlines(True) if '"_ that are not _"' not in line]
    (folder / "dev.jsonl").write_text("".join(lines))
    dataset = open_dataset(folder)
    assert [section.plan.title for section in run(dataset=dataset).sections] == ["Atoms"]
    message = refusal(run, ("templates: [_]", "templates: [_ that are not _]"), dataset=dataset, error=InputError)
    assert message == f"{folder}: split dev has no query of protocol two: '_ that are not _', '_ that are not _'"


def test_what_is_read_of_a_text(run):
    marked = "{name: disentangled, formula: A − B*, method: operators, settings: {difference: disentangled}}"
    read = marked.replace("{name: disentangled,", "{name: model, reads: model,")
    text = "{name: text, reads: plain, method: operators}"
    change = (marked, f"{marked}\n      - {read}\n      - {text}")
    results = run(change)
    values = per_query(results.sections[0])
    assert values["model"] == values["disentangled"]
    assert values["text"] == values["vanilla"]
    shown = {example.method: example.expression for example in results.examples}
    assert " NOT " in shown["model"]
    assert "queries" not in results.settings
    results = run(change, read="model")
    values = per_query(results.sections[0])
    assert values["disentangled"] == values["model"]
    assert results.settings["queries"] == "plain texts, read as model"


SHOWN = """
title: Terms
about: Of one query.
datasets: [filmsets]
splits: [dev]
sections:
  - title: Set difference
    query: red spy films NOT red war films
    is_drawn: true
    rows:
      - {name: ignore, method: operators, settings: {difference: ignore}}
      - {name: disentangled, method: operators, settings: {difference: disentangled}, published_terms: spy 1}
      - {name: theirs, published_terms: "spy 2, war −1"}
"""


def test_the_terms_of_a_query_under_each_operator(run, tmp_path, monkeypatch):
    monkeypatch.setattr("pyserini_compneg.lab.experiments.plots._png", lambda figure: b"")  # takes longest
    results = run(text=SHOWN)
    (section,) = results.sections
    ignore, disentangled, theirs = section.rows
    assert [term for term, _ in ignore.terms.positive] == ["red", "spy", "film"] and not ignore.terms.negative
    assert disentangled.terms.positive == ignore.terms.positive
    ((term, weight),) = disentangled.terms.negative
    assert term == "war" and weight < 0 and theirs.terms is None
    assert [*section.atoms["ignore"]] == ["red spy films", "red war films"]
    assert section.atoms["ignore"]["red spy films"] == ignore.terms
    write_results(results, tmp_path / "results.json")
    (written,) = json.loads((tmp_path / "results.json").read_text())["sections"]
    assert written["rows"][1]["terms"]["negative"] == [["war", weight]]
    assert not (tmp_path / "report" / "runs").exists()
    write_report(results, tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text()
    assert (tmp_path / "report" / "figures" / "framework-1.png").is_file() and "figures/framework-1.png" in page
    assert f"| war **\N{MINUS SIGN}{-weight:.2f}** |\n| disentangled (published) |  | spy 1 |  |\n" in page
    assert "| theirs (published) |  | spy 2, war −1 |  |\n" in page


MODELS = """
title: Of a model
about: Whose figures are published.
datasets: [filmsets]
splits: [dev]
measures: [nDCG@10]
models: {nc: [filmsets-nc]}
published_with: nc
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: ignore, method: operators, settings: {difference: ignore}, published: [0.25]}
      - {name: disentangled, method: operators, settings: {difference: disentangled}}
"""


def test_a_published_figure_is_in_a_row_of_its_model_alone(run, tmp_path):
    data = open_dataset(write_film_set(tmp_path / "films", with_train=True))
    results = run(text=MODELS, dataset=data)
    rows = {row.name: row for row in results.sections[0].rows}
    assert [*rows] == ["ignore", "ignore, nc", "disentangled"]
    assert rows["ignore"].path and rows["ignore"].published(0) is None
    theirs = rows["ignore, nc"]
    assert (theirs.path, theirs.published(0)) == (None, 0.25)
    assert theirs.plan.note == "Published for nc, which is not run here; --train trains it."
    counted = {name: results.dataset[name] for name in ("training split", "queries for training", "of them with NOT")}
    topics = data.topics("train")
    negated = sum("not" in topic.group.split() for topic in topics)
    assert counted == {"training split": "train", "queries for training": len(topics), "of them with NOT": negated}
    assert 0 < negated < len(topics)
    atomic = run(text=MODELS, dataset=data, training_split="train-nc").dataset
    assert atomic["queries for training"] == len(data.topics("train-nc")) and atomic["of them with NOT"] == 0
    for options in ({"text": MODELS, "training_split": "domain-none"}, {}):  # no query of this domain; no models
        assert "training split" not in run(dataset=data, **options).dataset


def test_rows_of_an_encoder_that_is_not_there_are_only_published(run):
    row = "{name: hub, method: operators, encoder: no/such-model, published: [0.1]}"
    results = run(("{name: ignore,", f"{row}\n      - {{name: ignore,"))
    hub = results.sections[0].rows[1]
    assert (hub.name, hub.path, hub.published(0)) == ("hub", None, 0.1)
    assert results.settings["left out"].startswith("rows of no/such-model: ")


TUNED = """
title: Tuned
about: Rows at their best value.
datasets: [filmsets]
splits: [dev]
tuned_on: [domain-train, train]
measures: [nDCG@10, R@100]
sections:
  - title: Set difference
    templates: [_ that are not _]
    rows:
      - {name: ignore, method: operators, settings: {difference: ignore}}
      - {name: disentangled, method: operators, settings: {difference: disentangled}, tuned: true, note: Ours.,
         sweep: {setting: difference_weight, symbol: λ, values: [0, 0.5, 1000]}}
"""


def test_a_row_is_tuned_on_another_split(run, tmp_path):
    data = open_dataset(write_film_set(tmp_path / "films", with_train=True))
    results = run(text=TUNED, dataset=data)
    (section,) = results.sections
    assert results.settings["tuned on"] == "train"
    ignore, tuned = section.rows
    assert tuned.name in ("disentangled, tuned λ = 0", "disentangled, tuned λ = 0.5", "disentangled, tuned λ = 1000")
    assert tuned.plan.note == "Ours. Of several values, the one with the best nDCG@10 on train."
    found = {}  # the same by hand, on the other split
    untuned = [("[dev]", "[train]"), ("tuned_on: [domain-train, train]", ""), ("tuned: true, ", "")]
    for value in ("0", "0.5", "1000"):
        alone = ("[0, 0.5, 1000]", f"[{value}]")
        plain = run(*untuned, alone, text=TUNED, dataset=data, folder=tmp_path / "other")
        found[value] = plain.sections[0].rows[1].figures["nDCG@10"].value
    best = max(found, key=lambda value: found[value])
    assert tuned.name == f"disentangled, tuned λ = {best}" and not results.curves
    assert results.runs_made == 2  # of the report; the runs for tuning are beside them
    assert len([*(tmp_path / "report" / "runs").glob("tuning-*")]) == 3


@pytest.mark.parametrize("is_train_there", [True, False])
def test_a_split_of_other_queries_is_needed_to_tune_on(run, tmp_path, is_train_there):
    dataset = open_dataset(write_film_set(tmp_path / "films"))
    if is_train_there:  # under other ids, the queries are the same
        text = (dataset.folder / "dev.jsonl").read_text().replace('": "q', '": "other')
        (dataset.folder / "train.jsonl").write_text(text)
        dataset = open_dataset(dataset.folder)
    message = refusal(run, text=TUNED, dataset=dataset, error=InputError)
    said = "protocol two is tuned on a split that shares no query with dev, on one of domain-train, train; there are: "
    assert message == f"{dataset.folder}: {said}{', '.join(dataset.splits)}"


@pytest.fixture
def films_among_others(tmp_path):
    """The dataset, with so many other documents that words of films are not common."""
    films = write_film_set(tmp_path / "films")
    rare = [{"docid": f"x{n}", "title": "", "text": "something else altogether"} for n in range(400)]
    with (films / "documents.jsonl").open("a") as handle:
        handle.writelines(json.dumps(one) + "\n" for one in rare)
    return open_dataset(films)


def test_words_of_the_documents_as_queries(films_among_others, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("pyserini_compneg.lab.experiments.plots._png", lambda figure: drawn.append(figure) or b"")
    protocol, data = read_protocol("widdows-words"), films_among_others
    nowhere = tmp_path / "nowhere"
    nothing = Experiment(data, tmp_path / "r", RunOptions([], wordnet=nowhere))
    message = refusal(nothing.run, protocol, error=InputError)
    assert message.startswith(f"{nowhere}: no file index.noun of WordNet; install ")
    options = RunOptions([Engine("bm25")], wordnet=write_wordnet(tmp_path / "wn"))
    results = Experiment(data, tmp_path / "report", options).run(protocol)
    one, two = results.sections
    assert one.queries > 5 and two.queries > 5 and not (tmp_path / "report" / "indexes").exists()
    shares = {row.name: row.figures["negated_terms"].value for row in one.rows}
    assert shares["filtering"] == 0.0 < shares["no negation"] and shares["orthogonal negation"] < shares["no negation"]
    assert any(example.positive for example in results.examples)
    write_report(results, tmp_path / "report")
    shares = "positive_terms, negated_terms, negated_neighbours, negated_synonyms".replace("_", "\\_")
    assert f"![Bars: {shares} of each method](" in (tmp_path / "report" / "report.md").read_text()
    bars = drawn[0].axes[0].containers
    names = [name.replace("\\", "").replace("_", " ") for name in shares.split(", ")]
    assert [group.get_label() for group in bars] == names and {len(group) for group in bars} == {len(one.rows)}
    assert bars[1].datavalues[0] == 100 * one.rows[0].figures["negated_terms"].value


def test_the_words_near_a_word_without_a_sense(films_among_others, tmp_path, caplog):
    """As ``suit NOT lawsuit`` in Widdows' Table 1."""
    protocol = read_protocol("widdows-senses")
    experiment = Experiment(films_among_others, tmp_path / "report", RunOptions([Engine("bm25")]))
    results = experiment.run(protocol.asking("spy NOT comedy"))
    (section,) = results.sections
    plain, _, negated = section.rows
    assert plain.terms.positive[0][0] == "spy" and "comedy" in dict(plain.terms.positive)
    assert "comedy" not in dict(negated.terms.positive) and not plain.plan.published_terms
    write_report(results, tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text()
    assert "| method | formula | nearest words |\n" in page and "| no negation | a | spy **1.00**, " in page
    assert not caplog.messages
    suit, _ = experiment.run(protocol).sections
    assert [row.terms for row in suit.rows] == [None] * 3 and suit.rows[0].plan.published_terms
    said = "too few documents have 'suit' and 'lawsuit' for a vector"
    assert caplog.messages[0] == f"section 'A word without a sense' has no words: {said}" and len(caplog.messages) == 2
