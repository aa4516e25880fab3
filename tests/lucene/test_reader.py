import re
import shutil
from dataclasses import replace

import pytest
from impact_indexes import add_documents, delete_documents, pairs, write_index
from refusals import refusal

from pyserini_compneg.compose import Linear
from pyserini_compneg.index import ImpactIndexer, verify_index
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, Manifest, analyze, java_class, requests
from pyserini_compneg.lucene import reader as reader_module
from pyserini_compneg.lucene.versions import running_lucene, written_by
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError, OutputError


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "overwrite", "remove"])
@pytest.mark.parametrize("file", ["segments_*", "*.doc", "*.tim", "*.fnm", "*.si"])
def test_a_damaged_index(tmp_path, file, damage):
    index = write_index(tmp_path / "index", {f"d{i}": {"a": i + 1} for i in range(300)})
    (path,) = index.glob(file)
    content = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"\0" * len(content))
    text = refusal(ImpactReader, index, error=IndexFormatError)
    expected = "not a Lucene index" if (file, damage) == ("segments_*", "remove") else "cannot be opened: "
    assert text.startswith(f"{index}: {expected}")
    assert "\n" not in text
    assert "Exception" not in text.split("(resource", 1)[0]


HEAD = len(b"....\x08segments....") + 16 + len(b"\x011")  # where the version begins that wrote a segments file


@pytest.mark.parametrize(("lines", "said"), [(1, "another Pyserini|Pyserini 2, which has.*"), (-2, "another Pyserini")])
def test_an_index_of_another_line_names_its_reader(tmp_path, lines, said):
    index = write_index(tmp_path / "index", {"a": {"t": 3}})
    (path,) = index.glob("segments_*")
    major, minor, bugfix = running_lucene()
    content = bytearray(path.read_bytes())
    assert tuple(content[HEAD : HEAD + 4]) == (major, minor, bugfix, major) == (*written_by(path), major)
    content[HEAD] = content[HEAD + 3] = major + lines
    path.write_bytes(content)
    theirs, ours = f"{major + lines}.{minor}.{bugfix}", f"{major}.{minor}.{bugfix}"
    for opens in (ImpactReader, verify_index):
        text = refusal(opens, index, error=IndexFormatError)
        expected = f"{index}: Lucene {theirs} wrote it, which Lucene {ours} cannot read; open it with "
        assert text.startswith(expected)
        assert re.fullmatch(f"(?:{said}), or build it again", text.removeprefix(expected))


def test_damage_that_a_search_does_not_notice(tmp_path):
    """Changed bits of postings and ids are found by verify_index; ids that are no text by a search, too."""
    documents = {f"d{i:03}": {"a": i % 50 + 1, f"t{i}": 3} for i in range(300)}
    with ImpactIndexer(tmp_path / "index", "m") as indexer:
        for docid, vector in documents.items():
            indexer.add(docid, vector)
    assert verify_index(tmp_path / "index") == 300
    before = sorted(path.name for path in (tmp_path / "index").iterdir())
    for suffix in ("doc", "tim", "dvd", "dvd"):
        (path,) = (tmp_path / "index").glob(f"*.{suffix}")
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        text = refusal(verify_index, tmp_path / "index", error=IndexFormatError)
        assert text.startswith(f"{tmp_path / 'index'}: is damaged, rebuild it: ")
        assert "\n" not in text
        ids = whole.find(b"d001d002")
        path.write_bytes(whole[:ids] + b"\xff" * 100 + whole[ids + 100 :] if suffix == "dvd" else whole)
    with ImpactReader(tmp_path / "index") as reader:
        text = refusal(reader.search, [Linear({"a": 1.0})], 300, error=IndexFormatError)
    assert text == (
        f"{tmp_path / 'index'}: the documents' ids are damaged: rebuild the index; index --verify finds all damage"
    )
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == before


@pytest.mark.parametrize(
    ("segments", "fault"),
    [
        ([{"d": {"a": 1}}, {"d": {"a": 1}}], "is damaged, rebuild it: the document id 'd' is that of two documents"),
        ([{"d": {"a": 1}}, {"e": {}}], "has 2 documents, and its compneg.json counts 1; rebuild the index"),
        ([{"d": {}}], "is damaged, rebuild it: 1 documents have no term, and the manifest counts 0"),
    ],
)
def test_an_index_that_is_not_what_its_manifest_says(tmp_path, segments, fault):
    index = write_index(tmp_path / "index", *segments)
    assert ImpactReader(index).document_count == len(segments)  # without a manifest
    Manifest("m", documents=2 if "two" in fault else 1).write(index)
    assert refusal(verify_index, index, error=IndexFormatError) == f"{index}: {fault}"


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"signed": False}, "it has negative weights, and the manifest says signed: false"),
        ({"pair_terms": 0}, "a document has 3 pairs, and it should have 0 by the manifest's pair_terms: 0"),
        ({"pair_terms": 2}, "a document has 3 pairs, and it should have 1 by the manifest's pair_terms: 2"),
        ({"pair_terms": 4}, "a document has 3 pairs, and it should have 6 by the manifest's pair_terms: 4"),
        ({"pair_terms": 0, "pairs": ("a∩b", "a∩c")}, "it has the pair 'b∩c', which the manifest does not name"),
        (
            {"pair_terms": 0, "pairs": ("a∩b", "a∩c", "a∩e", "b∩c", "x∩y")},
            "the pair 'a∩e' is not in the documents of both its terms, with their impacts",
        ),
        (
            {"pair_scale": 16},
            "a document's largest pair has the impact 20, and it should have 39 by the manifest's pair_scale: 16",
        ),
        (
            {"pair_terms": 0, "pairs": ("a∩b", "a∩c", "b∩c"), "pair_scale": 1},
            "the pair 'a∩b' is not in the documents of both its terms, with their impacts",
        ),
        ({"impact_scale": 2}, "it has an impact of 3, and bm25's are at most 2, the manifest's impact_scale"),
    ],
)
def test_an_index_of_other_settings_than_its_manifest_says(tmp_path, changed, fault):
    index = tmp_path / "index"
    with ImpactIndexer(index, "bm25", impact_scale=4, signed=True, pair_terms=3) as indexer:
        indexer.add("d", {"a": 0.75, "b": 0.5, "c": 0.5, "e": 0.25, "f": -0.25})
        indexer.add("other", {"a": 0.5, "b": 0.5})
    assert verify_index(index) == 2
    replace(Manifest.read(index), **changed).write(index)
    assert refusal(verify_index, index, error=IndexFormatError) == f"{index}: is damaged, rebuild it: {fault}"


def test_the_chosen_pairs_of_an_index(tmp_path):
    """A name that can be read as two pairs may stand for either, and is not checked."""
    vectors = {"d": {"a": 4, "b": 9, "c": 2}, "e": {"a": 2, "c": 5}, "f": {"b": 1, "∩c": 1, "b∩": 3, "c": 8}}
    with ImpactIndexer(tmp_path / "index", "m", pairs=("b∩a", "b∩c", "b∩∩c", "c∩z")) as indexer:
        for docid, vector in vectors.items():
            indexer.add(docid, vector)
    assert verify_index(tmp_path / "index") == 3


def test_statistics_and_stored_documents(tmp_path):
    segments = {"é": {"a": 1, "😀": 2}, "d2": {"a": 1}}, {"d3": {}}
    with ImpactReader(write_index(tmp_path / "index", *segments, raw=True)) as reader:
        assert reader.document_count == 3
        assert reader.document_frequencies([]) == []
        assert reader.document_frequencies(["a", "b", "😀"]) == [2, 0, 1]
        assert reader.raw("é") == '{"id": "é", "title": "title of é"}'
        assert reader.raw("none") is None
        assert reader.search([], 10) == []
        reader.close()
        reader.close()
    with ImpactReader(write_index(tmp_path / "without", *segments)) as reader:
        assert reader.raw("d2") is None


def test_every_impact_that_may_be_written_comes_back(tmp_path):
    impacts = [1, 127, 128, 255, 256, 65_535, 65_536, 1 << 20]
    index = write_index(tmp_path / "index", {f"d{impact}": {"a": impact} for impact in impacts})
    with ImpactReader(index) as reader:
        assert pairs(reader.search([Linear({"a": 1.0})], 10)[0]) == [(f"d{i}", float(i)) for i in reversed(impacts)]


def test_threads_write_what_one_thread_writes(tmp_path):
    documents = {f"d{i:03}": {"a": i % 7 + 1, f"t{i % 5}": 3} for i in range(500)}
    with ImpactReader(write_index(tmp_path / "one", documents)) as one:
        (tmp_path / "four").mkdir()
        with ImpactWriter(tmp_path / "four", threads=4) as writer:
            add_documents(writer, documents)
            writer.optimize()
            writer.commit()
        with ImpactReader(tmp_path / "four") as four:
            nodes = [Linear({"a": 1.0}), Linear({"t1": 2.0, "a": -1.0})]
            assert one.search(nodes, 500) == four.search(nodes, 500)


def test_a_folder_that_cannot_be_made(tmp_path):
    folder = tmp_path / "file" / "index"
    (tmp_path / "file").write_text("x")
    text = refusal(ImpactWriter, folder, error=OutputError)
    assert text.startswith(f"{folder}: the index cannot be written: ") and "\n" not in text


def test_a_writer_that_cannot_start_lets_go_of_the_folder(tmp_path):
    unfinished = tmp_path / "compneg.maxima.tmp"
    (unfinished / "in the way").mkdir(parents=True)
    text = refusal(ImpactWriter, tmp_path, error=OutputError)
    assert text.startswith(f"{tmp_path}: the index cannot be written: ") and unfinished.name in text
    shutil.rmtree(unfinished)
    with ImpactWriter(tmp_path) as writer:
        add_documents(writer, {"d": {"a": 1}})
        writer.commit()


def test_analysis_is_that_of_anserini():
    assert analyze([]) == []
    assert analyze(["The Birds, flying!", "", "the", "naïve 😀 中文 a\0b", "Drive (2007 film)"]) == [
        ["bird", "fly"],
        [],
        [],
        ["naïv", "😀", "中", "文", "b"],
        ["drive", "2007", "film"],
    ]
    assert analyze(["ᠬᠠᠶ\u202fᠤᠨ", "12\u202f000"]) == [["ᠬᠠᠶ", "ᠤᠨ"], ["12", "000"]]
    assert analyze(["broken \ud800 half"]) == [["broken", "half"]]


def test_a_relative_path_is_this_process_own(tmp_path, monkeypatch):
    """Java keeps to the folder that it was started in, wherever the process has gone since."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with ImpactWriter("index") as writer:
            add_documents(writer, {name: {"a": 1}})
            writer.commit()
        assert (tmp_path / name / "index").is_dir()
        with ImpactReader("index") as reader:
            (ranking,) = reader.search([Linear({"a": 1.0})], 1)
            assert ranking.docids == [name]


def test_best_scores_are_looked_up_once(tmp_path, monkeypatch):
    index, asked = write_index(tmp_path / "index", {"d1": {"a": 3, "b": 1}, "d2": {"a": 2}}), []
    search = ImpactReader.search
    monkeypatch.setattr(
        ImpactReader, "search", lambda self, nodes, k: asked.append((len(nodes), k)) or search(self, nodes, k)
    )
    with ImpactReader(index) as reader:
        queries = [Linear({"a": 1.0}), Linear({"b": 2.0}), Linear({"a": 1.0})]
        for _ in range(2):
            assert [list(scores) for scores in reader.top_scores(queries, 2)] == [[3, 2], [2], [3, 2]]
        assert asked == [(2, 2)]
        assert [list(scores) for scores in reader.top_scores(queries[:1], 1)] == [[3]]  # of another k
        delete_documents(index, ["d1"])
        assert reader.reopen()
        assert [list(scores) for scores in reader.top_scores(queries[:1], 2)] == [[2]]
        monkeypatch.setattr(requests, "KEPT_SCORES", 2)
        several = [Linear({"a": number + 1.0}) for number in range(5)]
        assert [list(scores) for scores in reader.top_scores(several, 1)] == [[2], [4], [6], [8], [10]]
        asked.clear()
        assert len(reader._top_scores) == 2
        assert [list(scores) for scores in reader.top_scores(several[3:], 1)] == [[8], [10]]
        assert asked == []


def test_what_java_says_while_an_index_is_opened_is_told(tmp_path, monkeypatch):
    class JavaException(Exception):
        innermessage = "no such segment"

    class Searcher:
        def holdsTexts(self):
            return False

        def documentCount(self):
            return 1

        def fieldDocumentCount(self):
            raise JavaException

    index = write_index(tmp_path / "index", {"d1": {"a": 3}})
    monkeypatch.setattr(reader_module, "java_class", lambda _: lambda *_: Searcher())
    said = refusal(ImpactReader, index, error=IndexReadError)
    assert said == f"{index}: cannot be opened: no such segment"


def test_what_was_read_of_terms_is_forgotten_when_an_index_is_closed(tmp_path):
    java_class("java.lang.Object")
    from jnius import JavaClass, JavaStaticMethod, MetaJavaClass  # once the machine runs

    class RecentTerms(JavaClass, metaclass=MetaJavaClass):
        __javaclass__ = "io/compneg/search/RecentTerms"
        bytes = JavaStaticMethod("()J")

    kept = [RecentTerms.bytes()]
    indexes = [write_index(tmp_path / name, {"d1": {"a": 1}}, {"d2": {"a": 1}}) for name in ("one", "other")]
    readers = list(map(ImpactReader, indexes))
    for reader in readers:
        for _ in range(2):  # the second search finds all kept
            reader.search([Linear({"a": 1.0, "b": 1.0})], 10)
        kept.append(RecentTerms.bytes())
    assert kept[2] - kept[1] == kept[1] - kept[0] > 0
    for reader, left in zip(readers, reversed(kept[:2]), strict=True):
        reader.close()
        assert RecentTerms.bytes() == left
