import itertools
import json

import pytest
from category_model import DOCUMENTS, KINDS, answered, categories
from chat_server import chat_server, content
from json_lines import write_jsonl
from refusals import refusal
from works import killed_at_steps

from pyserini_compneg.expression import (
    Atom,
    Difference,
    Expression,
    Intersection,
    Union,
    leaves,
)
from pyserini_compneg.lab.experiments.datasets import open_dataset
from pyserini_compneg.lab.training import GenerationSettings, generate
from pyserini_compneg.lab.training.config import SourceConfig
from pyserini_compneg.lab.training.examples import read_examples
from pyserini_compneg.lab.training.judged_requests import read_judged, refuse_common
from pyserini_compneg.lab.training.tagged_requests import read_requests
from pyserini_compneg.reading import ChatModel
from pyserini_compneg.support.errors import InputError, OutputError, QueryError

pytest.importorskip("openai")

FILES = [
    "answers.jsonl",
    "atoms.jsonl",
    "documents.jsonl",
    "judged.jsonl",
    "requests.txt",
    "summary.json",
    "train.jsonl",
]
LIMIT = GenerationSettings(limit=40)


@pytest.fixture
def collection(tmp_path):
    return write_jsonl(tmp_path / "collection.jsonl", *DOCUMENTS)


@pytest.fixture
def use(monkeypatch):
    def use(server):
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("COMPNEG_LLM_MODEL", "some-model")

    return use


@pytest.fixture
def make(collection, tmp_path, use):
    """Makes a folder, with a server of its own that answers rightly."""

    def make(name, settings=LIMIT):
        with chat_server(answered) as server:
            use(server)
            return generate(collection, tmp_path / name, settings), server

    return make


def matches(expression: Expression, text: str) -> bool:
    match expression:
        case Atom(kind):
            return KINDS[kind] in text.replace(".", "").replace(",", "").split()
        case Union(operands):
            return any(matches(one, text) for one in operands)
        case Intersection(operands):
            return all(matches(one, text) for one in operands)
        case Difference(left, right):
            return matches(left, text) and not matches(right, text)
    raise AssertionError(expression)


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_is_a_dataset_and_has_requests_for_readers(make, tmp_path, collection):
    results, server = make("made")
    folder, texts = tmp_path / "made", {one["id"]: one["contents"] for one in DOCUMENTS}
    assert sorted(content_of(folder)) == FILES
    assert {path.name for path in tmp_path.iterdir()} == {"made", "collection.jsonl"}
    assert results["questions"] == len(server.requests) == len((folder / "answers.jsonl").read_text().splitlines())
    assert (results["words in documents"], results["requests"] > 6, results["questions"] <= 40) == (1.0, True, True)
    assert json.loads((folder / "summary.json").read_text())["results"] == results

    dataset = open_dataset(folder)
    topics, qrels = dataset.topics("train"), dataset.qrels("train")
    assert (dataset.kind, dataset.provenance.startswith("generated: ")) == ("filmsets", True)
    assert len(topics) == results["requests"]
    for topic in topics:
        assert qrels[topic.qid] and all(matches(topic.expression, texts[docid]) for docid in qrels[topic.qid])
        assert all(atom.text in topic.text for atom in leaves(topic.expression))
    assert {topic.group for topic in topics} > {"_", "_ that are not _", "_ that are also _"}

    source = SourceConfig(dataset=str(folder), split="train", negatives="compositional", atoms=f"{folder}/atoms.jsonl")
    examples = read_examples(source, 1)
    wordings = {example.query: example for example in examples if example.negatives}
    assert {"not", "also"} <= {word for query in wordings for word in query.split()}
    by_wording = {topic.text.removeprefix("Please show me "): topic.expression for topic in topics}
    for wording, example in wordings.items():
        assert matches(by_wording[wording], example.positive)
        assert not any(matches(by_wording[wording], negative) for negative in example.negatives)

    tagged, judged = read_requests(folder / "requests.txt"), read_judged(folder / "judged.jsonl")
    refuse_common(tagged, judged)
    assert [len(tagged) + len(judged), len(judged)] == [len(topics), -(-len(topics) // 10)]
    assert {request.text for request in tagged} | {one.query for one in judged} == {topic.text for topic in topics}


def test_every_answer_is_kept_with_its_question(make, tmp_path):
    _, server = make("made", GenerationSettings(limit=3))
    kept = [json.loads(line) for line in (tmp_path / "made" / "answers.jsonl").read_text().splitlines()]
    assert [list(one) for one in kept] == [["model", "settings", "instructions", "text", "answer"]] * 3
    for one, request in zip(kept, server.requests, strict=True):
        messages = [{"role": "system", "content": one["instructions"]}, {"role": "user", "content": one["text"]}]
        assert request == {"model": one["model"], "messages": messages, **one["settings"]}
        assert one["answer"] == json.loads(answered(request)[1])["choices"][0]["message"]["content"]


@pytest.mark.parametrize("number", [0, 1, 2, 7])
def test_a_killed_command_asks_nothing_again(make, use, collection, tmp_path, number, monkeypatch):
    settings = GenerationSettings(limit=10)
    _, whole = make("whole", settings)
    answer, count = ChatModel.answer, itertools.count()

    def killed(self, *arguments):
        if next(count) == number:
            raise KeyboardInterrupt
        return answer(self, *arguments)

    with chat_server(answered) as server, monkeypatch.context() as patch:
        use(server)
        patch.setattr(ChatModel, "answer", killed)
        with pytest.raises(KeyboardInterrupt):
            generate(collection, tmp_path / "made", settings)
        assert (tmp_path / "made").exists() == (number > 0)
    _, rest = make("made", settings)
    assert server.requests + rest.requests == whole.requests
    first, second = content_of(tmp_path / "whole"), content_of(tmp_path / "made")
    assert first == second
    _, none = make("made", settings)
    assert none.requests == []
    assert content_of(tmp_path / "made") == first


def test_a_kill_at_any_change_of_a_file_loses_no_answer(make, collection, tmp_path):
    settings = GenerationSettings(limit=3)
    (tmp_path / "home").mkdir()
    with killed_at_steps(tmp_path / "home", tmp_path / "kills", every=6) as killed:
        _, whole = make("home/made", settings)
    assert len(killed) > 3
    for folder in killed:
        kept = folder / "made" / "answers.jsonl"
        count = len(kept.read_bytes().splitlines()) if kept.exists() else 0
        _, rest = make(f"kills/{folder.name}/made", settings)
        assert rest.requests == whole.requests[count:]
        assert content_of(folder / "made") == content_of(tmp_path / "home" / "made")
        assert {path.name for path in folder.iterdir()} == {"made"}


def test_the_end_of_an_answer_that_was_being_written_is_asked_again(make, tmp_path):
    _, whole = make("whole", GenerationSettings(limit=5))
    lines = (tmp_path / "whole" / "answers.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "answers.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:-5])
    _, rest = make("made", GenerationSettings(limit=5))
    assert rest.requests == whole.requests[3:]
    assert content_of(tmp_path / "made") == content_of(tmp_path / "whole")


def test_a_larger_limit_adds_to_the_data(make, tmp_path):
    make("made", GenerationSettings(limit=9))
    before = (tmp_path / "made" / "train.jsonl").read_text()
    _, server = make("made", GenerationSettings(limit=20))
    assert len(server.requests) == 11
    after = (tmp_path / "made" / "train.jsonl").read_text()
    assert after.startswith(before) and len(after) > len(before)


def test_another_seed_begins_with_other_documents(make, tmp_path):
    make("one", GenerationSettings(limit=9))
    make("two", GenerationSettings(limit=9, seed=2))
    assert (tmp_path / "one" / "train.jsonl").read_text() != (tmp_path / "two" / "train.jsonl").read_text()


def failing_at(place, reply):
    count = itertools.count()
    return lambda request: reply if next(count) >= place else answered(request)


NO_MODEL = json.dumps({"error": {"message": "The model `some-model`\ndoes not exist", "code": 404}})


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((401, '{"error": {"message": "bad key"}}'), "HTTP status 401: bad key"),
        ((404, NO_MODEL), "HTTP status 404: The model `some-model` does not exist"),
        ((429, "slow down"), "HTTP status 429"),
        ((500, ""), "HTTP status 500"),
        ((200, "<html>"), "the answer is not a chat completion"),
        ((200, '{"choices": [{"message": {"content": 7}}]}'), "the answer is not a chat completion"),
    ],
)
def test_a_server_that_fails_ends_the_work_and_loses_nothing(use, make, collection, tmp_path, reply, said):
    _, whole = make("whole", GenerationSettings(limit=8))
    for place in (0, 3):
        with chat_server(failing_at(place, reply)) as server:
            use(server)
            told = refusal(generate, collection, tmp_path / "made", GenerationSettings(limit=8), error=QueryError)
        assert told == f"some-model: {said}; {place} answers are kept, and the same command goes on"
        assert len(server.requests) == place + 1
        assert (tmp_path / "made").exists() == (place > 0)
    _, rest = make("made", GenerationSettings(limit=8))
    assert rest.requests == whole.requests[3:]
    assert content_of(tmp_path / "made") == content_of(tmp_path / "whole")


def test_no_server(collection, tmp_path, monkeypatch):
    with chat_server(answered) as server:
        pass
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("COMPNEG_LLM_MODEL", "some-model")
    told = refusal(generate, collection, tmp_path / "made", error=QueryError)
    assert told == "some-model: [Errno 111] Connection refused; 0 answers are kept, and the same command goes on"
    assert {path.name for path in tmp_path.iterdir()} == {"collection.jsonl"}


def test_a_busy_server_is_asked_again_when_it_allows(use, collection, tmp_path):
    count = itertools.count()

    def busy(request):
        return (429, "") if next(count) % 3 else answered(request)

    with chat_server(busy, headers={"x-should-retry": "true", "Retry-After": "0.01"}) as server:
        use(server)
        results = generate(collection, tmp_path / "made", GenerationSettings(limit=5))
    assert results["questions"] == 5
    assert len(server.requests) == 13  # two of three requests are refused, the first and the last are not


@pytest.mark.parametrize(
    ("reply", "counted"),
    [
        (content(""), "questions 3, atoms 0, requests 0, rejected: atoms: not as asked 3"),
        (content("sorry"), "questions 3, atoms 0, requests 0, rejected: atoms: not as asked 3"),
        (content('{"categories": [7]}'), "questions 3, atoms 0, requests 0, rejected: atom: not as asked 3"),
    ],
)
def test_a_model_whose_answers_cannot_be_used(use, collection, tmp_path, reply, counted):
    with chat_server(reply) as server:
        use(server)
        told = refusal(generate, collection, tmp_path / "made", GenerationSettings(limit=3), error=QueryError)
    assert told == f"some-model: no answer can be used ({counted}); choose another model"
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["answers.jsonl"]


def test_a_useless_model_is_not_asked_to_the_limit(use, tmp_path):
    documents = ({"id": f"d{number}", "contents": f"shared word{number}"} for number in range(99))
    collection = write_jsonl(tmp_path / "c.jsonl", *documents)
    with chat_server(content("{}")) as server:
        use(server)
        refusal(generate, collection, tmp_path / "made", error=QueryError)
    assert len(server.requests) == 20


def test_some_bad_answers_are_counted_and_left_out(use, collection, tmp_path):
    count = itertools.count()

    def careless(request):
        return content("?") if next(count) % 4 == 2 else answered(request)

    with chat_server(careless) as server:
        use(server)
        results = generate(collection, tmp_path / "made", LIMIT)
    rejected = {name: value for name, value in results.items() if name.startswith("rejected")}
    assert {"rejected: request: not as asked", "rejected: atom: given already"} <= rejected.keys()
    assert len(open_dataset(tmp_path / "made").topics("train")) == results["requests"]


def test_files_of_somebody_else_are_kept(make, tmp_path, collection):
    """Beside those of an earlier run, among them the collection; or notes that have the name of the answers."""
    make("made", GenerationSettings(limit=20))
    own = tmp_path / "made" / "mine.jsonl"
    own.write_bytes(collection.read_bytes())
    said = f"{own}: was not made here, and the folder is made anew; move it away"
    assert refusal(make, "made", error=OutputError) == said
    assert "would overwrite" in refusal(generate, own, tmp_path / "made", error=OutputError)
    assert own.read_bytes() == collection.read_bytes()
    (tmp_path / "notes").mkdir()
    notes = tmp_path / "notes" / "answers.jsonl"
    notes.write_text("my notes")
    assert refusal(make, "notes", error=InputError) == f"{notes}: is no list of answers; move it away"
    assert notes.read_text() == "my notes"


def test_a_collection_of_one_document(use, tmp_path):
    collection = write_jsonl(tmp_path / "one.jsonl", DOCUMENTS[0])
    with chat_server(answered) as server:
        use(server)
        said = f"{collection}: has 1 documents, and requests combine two or more"
        assert refusal(generate, collection, tmp_path / "made", error=InputError) == said
    assert not (tmp_path / "made").exists()


def test_a_folder_of_something_else_is_left_alone(make, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError) as caught:
        make("made")
    said = "exists already, and was not made here (no answers.jsonl); choose another place with --output"
    assert str(caught.value) == f"{tmp_path}/made: {said}"
    assert content_of(tmp_path / "made") == {"thesis.txt": b"mine"}
    assert {path.name for path in tmp_path.iterdir()} == {"made", "collection.jsonl"}


@pytest.mark.parametrize(
    ("line", "said"),
    [("{", "not valid JSON: Expecting property name"), ('{"model": "m"}', "no 'answer'; delete the line")],
)
def test_a_damaged_answer_is_named(make, tmp_path, line, said):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "answers.jsonl").write_text(f"{line}\n")
    with pytest.raises(InputError) as caught:
        make("made")
    assert str(caught.value).startswith(f"{tmp_path}/made/answers.jsonl:1: {said}")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ('{"id": "d0", "contents": "again"}', "the document id 'd0' was given already"),
        ('{"id": "d99"}', "no text; expected `contents`, `title` and `text`, or `vector`"),
    ],
)
def test_a_bad_document_is_named_before_anything_is_asked(use, tmp_path, record, said):
    collection = write_jsonl(tmp_path / "c.jsonl", *DOCUMENTS, record)
    with chat_server(answered) as server:
        use(server)
        told = refusal(generate, collection, tmp_path / "made", error=InputError)
    assert told == f"{collection}:{len(DOCUMENTS) + 1}: {said}"
    assert server.requests == []
    assert {path.name for path in tmp_path.iterdir()} == {"c.jsonl"}


def test_documents_without_words_and_without_neighbours_are_not_asked_about(use, tmp_path):
    strange = ({"id": "a0", "contents": "???"}, {"id": "a1", "contents": "zyzzyva"}, {"id": "a2", "contents": " "})
    collection = write_jsonl(tmp_path / "c.jsonl", *DOCUMENTS, *strange)
    with chat_server(answered) as server:
        use(server)
        generate(collection, tmp_path / "made", LIMIT)
    asked = "".join(request["messages"][-1]["content"] for request in server.requests)
    assert "things" in asked and "?" not in asked and "zyzzyva" not in asked


def test_a_collection_that_is_used_up_is_said(make, caplog):
    make("made", GenerationSettings(limit=4))
    assert "used up" not in caplog.text
    results, _ = make("made", GenerationSettings(limit=10_000))
    assert f"the documents are used up after {results['questions']} of 10000 questions" in caplog.messages


def test_the_stand_in_knows_its_documents():
    assert {kind["name"] for kind in categories("\n".join(one["contents"] for one in DOCUMENTS))} == KINDS.keys()
