"""Vectors in: pairs, signs, scales, what is skipped, and what stock Anserini makes of the same documents."""

import gzip
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_folders import impacts
from pair_index import document_pairs, stored_pairs
from refusals import refusal

from pyserini_compneg.index import ImpactIndexer, build_index
from pyserini_compneg.index.index_folder import SKIPPED_LOG
from pyserini_compneg.lucene import ImpactReader, ImpactWriter, IndexSettings, Manifest
from pyserini_compneg.lucene.index_settings import MOST_PAIR_TERMS
from pyserini_compneg.support.errors import ArgumentError, EncodingError, InputError

few = settings(
    max_examples=settings.default.max_examples // 5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("scale", [1, 51.2, 0.5])
def test_signed_weights_go_under_complement_terms(tmp_path, scale):
    weights = {"a": 4, "b": -2, "c": -1, "¬": 2, "∩": -4}
    with ImpactIndexer(tmp_path / "index", "m", signed=True, impact_scale=scale, pair_terms=2) as indexer:
        indexer.add("d", weights)
    assert Manifest.read(tmp_path / "index").signed
    expected = {(term if weight > 0 else f"¬{term}"): abs(round(weight * scale)) for term, weight in weights.items()}
    expected = {term: impact for term, impact in expected.items() if impact}
    expected |= stored_pairs({"a": expected["a"], "¬": expected["¬"]}, 2)
    assert impacts(tmp_path / "index", "d", ["a", "b", "c", "¬", "∩", "¬a", "¬b", "¬c", "¬∩", "a∩¬"]) == expected


ALL = dict.fromkeys(["a", "b", "😀", "￮", "é", "z∩", "∩"], 1)
VECTORS = st.dictionaries(st.sampled_from([*ALL]), st.integers(1, 400), min_size=1)


CHOICES = st.integers(2, 8) | st.sets(st.sampled_from(sorted(document_pairs(ALL, len(ALL)).keys() - ALL)), min_size=1)


@few
@given(st.lists(VECTORS, min_size=1, max_size=5), CHOICES)
def test_pairs_are_those_of_equation_7(tmp_path_factory, vectors, choice):
    """Of the heaviest terms of a document, or chosen ones where a document has both terms."""
    index = tmp_path_factory.mktemp("pairs") / "index"
    chosen = {"pair_terms": choice} if isinstance(choice, int) else {"pairs": tuple(choice)}
    with ImpactIndexer(index, "m", **chosen) as indexer:
        for i, vector in enumerate(vectors):
            indexer.add(f"d{i}", vector)
    manifest = Manifest.read(index)
    assert (manifest.pair_terms or {*manifest.pairs}) == choice
    for i, vector in enumerate(vectors):
        everything = stored_pairs(vector, len(vector))
        chosen = stored_pairs(vector, choice) if isinstance(choice, int) else {*everything} & choice
        expected = {pair: everything[pair] for pair in chosen} | vector
        assert impacts(index, f"d{i}", sorted({*everything, *vector})) == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pairs": ("a∩b", "c")}, "pairs must be pairs of terms, such as 'andes∩birds', got ('a∩b', 'c')"),
        ({"pairs": ("a∩a",)}, "pairs must be pairs of terms, such as 'andes∩birds', got ('a∩a',)"),
        ({"pairs": ("a∩b", 3)}, "pairs must be pairs of terms, such as 'andes∩birds', got ('a∩b', 3)"),
        *(
            (
                {"pairs": ("c∩d", pair)},
                f"the pair '{pair}' is of a complement, which no index pairs; name pairs of terms without ¬",
            )
            for pair in ("a∩¬b", "¬a∩b")
        ),
        ({"pairs": "a∩b"}, "pairs must be pairs of terms, such as 'andes∩birds', got 'a∩b'"),
        (
            {"pairs": ("a∩b",), "pair_terms": 2},
            "pairs and pair_terms are two choices of the pairs to index; leave out one",
        ),
        (
            {"pairs": tuple(f"a∩{i}" for i in range(1_000_001))},
            "an index may have 1,000,000 chosen pairs, got 1,000,001",
        ),
        *(
            ({"pair_scale": scale}, f"pair_scale must be a power of two, at most 1,024, got {scale}")
            for scale in (0, 3, 2048, 2.0)
        ),
    ],
)
def test_pairs_that_cannot_be_indexed(settings, said):
    assert refusal(IndexSettings, **settings, error=ArgumentError) == said


def test_pairs_of_many_terms(tmp_path):
    vector = {f"t{i:03}": i + 1 for i in range(300)}
    with ImpactIndexer(tmp_path / "index", "m", pair_terms=MOST_PAIR_TERMS) as indexer:
        indexer.add("d", vector)
    assert impacts(tmp_path / "index", "d", ["t044∩t299", "t043∩t299", "t298∩t299"]) == {
        "t044∩t299": round(8 * (45 * 300) ** 0.5),
        "t298∩t299": round(8 * (299 * 300) ** 0.5),
    }


def test_bad_documents_are_skipped_counted_and_listed(tmp_path, caplog):
    folder = tmp_path / "c"
    folder.mkdir()
    a, b = folder / "a.jsonl", folder / "b.jsonl"
    a.write_bytes(
        b'{"id": "d1", "vector": {"a": 1}}\n{"id": "d2", "vector": {"a": -1}}\n\n{"id": "d3", "vector": {"a": "1"}}\n'
        b'not json\n{"id": "\xff", "vector": {}}\n{"id": "d4", "vector": {"a": 2}}\n{"id": "d1", "vector": {"b": 7}}\n'
    )
    b.write_text('{"id": "d2", "vector": {"a": 3}}\n{"id": "d4", "vector": {}}\n{"vector": {"a": 1}}\n')
    message = refusal(build_index, folder, tmp_path / "index", "m", threads=2)
    remedy = "to index negative weights build the index with --signed (signed=True)"
    assert message == f"{a}:2: the weight of 'a' is negative, -1; {remedy}"
    manifest = build_index(folder, tmp_path / "index", "m", on_error="skip")
    assert (manifest.documents, manifest.empty_documents) == (3, 0)
    assert impacts(tmp_path / "index", "d1", ["a", "b"]) == {"a": 1}
    assert impacts(tmp_path / "index", "d2", ["a"]) == {"a": 3}
    assert impacts(tmp_path / "index", "d4", ["a"]) == {"a": 2}
    with ImpactReader(tmp_path / "index") as reader:
        assert reader.document_frequencies(["a", "b"]) == [3, 0]
    log = (tmp_path / "index" / SKIPPED_LOG).read_text().splitlines()
    lines = [f"{a}:2", f"{a}:4", f"{a}:5", f"{a}:6", f"{b}:3", f"{a}:8", f"{b}:2"]
    assert [line.split(": ")[0] for line in log] == lines
    assert log[-1] == f"{b}:2: document id 'd4' was given at {a}:7 already"
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"7 documents were skipped; see {tmp_path / 'index' / SKIPPED_LOG}"]


def test_bad_texts_are_skipped(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b'{"id": "d1", "contents": "birds"}\n{"id": "d2"}\n\xff\n{"id": "d3", "contents": "bats"}\n'
        b'{"id": "d1", "contents": "bats bats"}\n'
    )
    manifest = build_index(path, tmp_path / "index", on_error="skip", store_raw=True)
    assert manifest.documents == 2
    assert manifest.settings["average_length"] == 4 / 3  # of what could be read, the second d1 included
    with ImpactReader(tmp_path / "index") as reader:
        assert reader.raw("d1") == '{"id": "d1", "contents": "birds"}'
        assert reader.document_frequencies(["bird", "bat"]) == [1, 1]
    assert len((tmp_path / "index" / SKIPPED_LOG).read_text().splitlines()) == 3


def test_no_duplicate_is_lost_whatever_else_is_in_its_line(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text(
        '{"id": "x", "contents": ["a", 7], "vector": {"a": 1}}\n'
        '{"id": "x", "contents": "\\ud83d", "vector": {"b": 1}}\n'
        '{"id": -0, "vector": {"a": 1}}\n{"id": -0, "vector": {"a": 1}}\n'
    )
    assert build_index(path, tmp_path / "index", "m", on_error="skip").documents == 2
    assert impacts(tmp_path / "index", "x", ["a", "b"]) == {"a": 1}
    with pytest.raises(InputError, match=f"^{path}:4: document id '-0' was given at {path}:3 already$"):
        build_index(path, tmp_path / "other", "m")


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_duplicate_that_is_not_found_again_is_no_index(tmp_path, monkeypatch, on_error):
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "x", "vector": {"a": 1}}\n' * 2 + '{"id": "y", "vector": {"a": 1}}\n')
    monkeypatch.setattr(ImpactWriter, "find", lambda *_: [])
    with pytest.raises(InputError, match=f"^{path}: document id 'x' was given twice and is not any more"):
        build_index(path, tmp_path / "index", "m", on_error=on_error)
    assert not (tmp_path / "index").exists()


@pytest.mark.slow
def test_a_duplicate_does_not_merge_the_whole_index(tmp_path, monkeypatch):
    segments = []
    delete = ImpactWriter.delete

    def counted(self, ids):
        self.commit()
        delete(self, ids)
        self.commit()
        segments.append(len(list((tmp_path / ".index.building").glob("*.si"))))

    monkeypatch.setattr(ImpactWriter, "delete", counted)
    with ImpactIndexer(tmp_path / "index", "m") as indexer:
        for i in range(6):
            indexer.add(f"d{i}", {"a": 1})
            indexer.checkpoint(i)
        indexer.add("d5", {"b": 1})
        indexer.checkpoint(6)
        indexer._writer.delete(["d5"])
    assert segments == [5]


def test_a_merged_index_is_not_written_twice_for_a_duplicate(tmp_path, monkeypatch):
    written = []

    def segments():
        return {path.name for path in (tmp_path / ".index.building").glob("*.si")}

    def deleted(self, *arguments, delete=ImpactWriter.delete, **options):
        self.commit()
        written.append(segments())
        delete(self, *arguments, **options)
        self.commit()
        written.append(segments())

    monkeypatch.setattr(ImpactWriter, "delete", deleted)
    path = tmp_path / "c.jsonl"
    lines = ['{"id": "x", "vector": {"a": 1}}', *(f'{{"id": "d{i}", "vector": {{}}}}' for i in range(30))]
    path.write_text("\n".join([*lines, '{"id": "x", "vector": {"b": 1}}']))
    manifest = build_index(path, tmp_path / "index", "m", on_error="skip", optimize=True)
    assert written[0] >= written[1] != set()
    assert (manifest.documents, manifest.empty_documents) == (31, 30)
    assert impacts(tmp_path / "index", "x", ["a", "b"]) == {"a": 1}
    assert len(list((tmp_path / "index").glob("*.si"))) == 1


def test_numbers_of_numpy_and_what_is_none(tmp_path):
    with ImpactIndexer(tmp_path / "index", "m", impact_scale=4) as indexer:
        indexer.add("d", {"a": np.float32(0.5), "b": np.int64(3), "c": 2})
    assert impacts(tmp_path / "index", "d", ["a", "b", "c"]) == {"a": 2, "b": 12, "c": 8}
    for wrong, said in (
        *((nan, "document:2: `vector` cannot be .* the weight of 'a' is nan") for nan in (math.nan, np.float16("nan"))),
        ("1", "document:2: the weight of 'a' must be a number, got the text '1'"),
        (object(), "document:2: `vector` cannot be written as JSON: a value of the type object"),
    ):
        with pytest.raises(InputError, match=said), ImpactIndexer(tmp_path / "other", "m") as indexer:
            indexer.add("c", {"a": 1})
            indexer.add("d", {"a": wrong})
        with ImpactIndexer(tmp_path / "skip", "m", on_error="skip", existing="overwrite") as indexer:
            indexer.add("c", {"a": wrong})
            indexer.add("d", {"a": 1})
            indexer.add("e", {"a": "1"})
        log = (tmp_path / "skip" / SKIPPED_LOG).read_text().splitlines()
        assert (indexer.skipped, [": document:" + line.split(":")[2] for line in log]) == (
            2,
            [": document:1", ": document:3"],
        )


def test_a_cut_gzip_file_is_never_skipped(tmp_path):
    lines = "".join(f'{{"id": "d{i}", "vector": {{"a": {i + 1}}}}}\n' for i in range(2000))
    packed = tmp_path / "c.jsonl.gz"
    packed.write_bytes(gzip.compress(lines.encode())[:-200])
    with pytest.raises(InputError, match=f"{packed}:[0-9]+: broken gzip data: "):
        build_index(packed, tmp_path / "index", "m", on_error="skip")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("name", ["", " "])
def test_an_encoder_has_a_name(tmp_path, name):
    said = refusal(ImpactIndexer, tmp_path / "index", name, error=EncodingError)
    assert said.startswith("the encoder must have a name") and list(tmp_path.iterdir()) == []


def test_an_id_added_twice(tmp_path):
    with pytest.raises(InputError) as caught, ImpactIndexer(tmp_path / "index", "m") as indexer:
        indexer.add("d1", {"a": 1})
        indexer.add("d1", {})
    assert str(caught.value) == f"{tmp_path / 'index'}: document id 'd1' is given twice"
    assert list(tmp_path.iterdir()) == []


def test_what_is_stored(tmp_path):
    with ImpactIndexer(tmp_path / "index", "m", store_raw=True) as indexer:
        for i in range(600):
            indexer.add(f"d{i}", {"a": 1}, {"title": f"No. {i}\n"} if i % 2 else None)
    with ImpactReader(tmp_path / "index") as reader:
        assert json.loads(reader.raw("d599")) == {"title": "No. 599\n"}
        assert json.loads(reader.raw("d598")) == {"id": "d598", "vector": {"a": 1}}
