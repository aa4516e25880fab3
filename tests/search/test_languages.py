"""An index of texts in another language: its queries are analysed as its documents were."""

import json
from functools import partial

import pytest
from impact_indexes import write_index
from json_lines import write_jsonl
from refusals import refusal
from stand_in_encoder import StandInEncoder

from pyserini_compneg import encode
from pyserini_compneg.commands.main import main
from pyserini_compneg.encode import document_encoders, query_encoder
from pyserini_compneg.encode.corpus import encode_collection
from pyserini_compneg.encode.sharded import encode_in_shards
from pyserini_compneg.index import build, build_index, build_sharded_index
from pyserini_compneg.lucene import LANGUAGES, ImpactReader, Manifest
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError, EncodingError, IndexFormatError

GERMAN = {
    "d1": "Die alten Häuser der Stadt",
    "d2": "Ein Garten mit vielen Blumen",
    "d3": "Ein Haus ohne Garten",
    "d4": "Die Stadt am Fluss",
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    documents = ({"id": docid, "contents": text} for docid, text in GERMAN.items())
    return write_jsonl(tmp_path_factory.mktemp("texts") / "german.jsonl", *documents)


@pytest.fixture(scope="module")
def german(collection):
    build_index(collection, collection.with_name("german"), bm25={"language": "de"}, store_raw=True)
    return collection.with_name("german")


def found(index, query, **options):
    with SignedImpactSearcher(index, **options) as searcher:
        return sorted(hit.docid for hit in searcher.search(query))


def test_queries_are_analysed_in_the_language_of_the_index(collection, german, tmp_path):
    assert Manifest.read(german).language == "de"
    assert Manifest.read(german).settings.keys() == {"k1", "b", "average_length"}
    assert found(german, "Haus") == found(german, "HÄUSER") == ["d1", "d3"]
    assert found(german, "Häuser NOT! Gärten") == ["d1"]  # operators are the same in every language
    build_index(collection, tmp_path / "english")
    assert "language" not in json.loads((tmp_path / "english" / "compneg.json").read_text())
    assert found(tmp_path / "english", "Haus") == ["d3"]
    with SignedImpactSearcher(german) as searcher:
        assert searcher.language == "de"
        assert [term for term, _ in searcher.explain("die Häuser", "d1").contributions] == ["haus"]


def test_shards_have_the_bits_of_one_index(collection, german, tmp_path):
    build_sharded_index(collection, tmp_path / "sharded", 2, bm25={"language": "de"})
    with SignedImpactSearcher(german) as whole, SignedImpactSearcher(tmp_path / "sharded") as sharded:
        assert sharded.language == "de"
        for query in ("Häuser der Stadt", "Gärten NOT Häuser"):
            assert sharded.search(query) == whole.search(query)


def test_the_model_reads_no_other_language(german):
    with SignedImpactSearcher(german) as searcher:
        said = "read: the model reads English, and the language of the index is de; write an expression"
        assert refusal(partial(searcher.search, read="model"), "Häuser", error=ArgumentError) == said
        assert searcher.search("NOT Häuser", read="plain") == searcher.search("NOT Häuser") != []


@pytest.mark.parametrize("language", [None, "en", "de"])
def test_an_index_of_stock_anserini_is_in_the_named_language(tmp_path, language):
    """It has no manifest."""
    index = write_index(tmp_path / "stock", {"d1": {"haus": 80}, "d2": {"häuser": 9}})
    assert found(index, "Häuser", encoder="bm25", language=language) == (["d1"] if language == "de" else ["d2"])


def test_what_does_not_fit_the_language_is_refused(german, tmp_path, caplog):
    with ImpactReader(german) as reader:
        said = f"{german}: its texts were indexed with --language de, not fr; leave out --language"
        assert refusal(query_encoder, None, reader, language="fr", error=IndexFormatError) == said
        query_encoder(None, reader, language="de")
        named = json.loads((german / "compneg.json").read_text())
    index = write_index(tmp_path / "index", {"d1": {"haus": 80}})
    for changes, said in (
        ({"language": "xx"}, f"its language 'xx' is unknown; this release knows {', '.join(LANGUAGES)}"),
        (
            {"language": "ko", "settings": {"lucene": 8}},
            "its texts were analysed by Lucene 8, and Lucene {} analyses ko differently; rebuild the index",
        ),
    ):
        (index / "compneg.json").write_text(json.dumps({**named, "documents": 1, **changes}))
        with ImpactReader(index) as reader:
            lucene = encode.bm25.analysis_settings("ko")["lucene"]
            message = refusal(query_encoder, None, reader, error=IndexFormatError)
            assert message == f"{index}: {said.format(lucene)}"
    for encoder, why in (("some/model", "has a vocabulary of its own"), (str(german / "compneg.json"), "vectors that")):
        message = refusal(query_encoder, encoder, None, language="de", error=EncodingError)
        assert message.startswith(f"{encoder}: {why}") and message.endswith(" for bm25 and bm25+MODEL, has no use")
    said = 'language is not a separate argument; give all as bm25={"k1": 0.9, "b": 0.4, "language": "en"}'
    assert refusal(build_index, german, tmp_path / "new", language="de", error=ArgumentError) == said


def test_a_build_goes_on_in_its_own_language(collection, tmp_path, capsys, monkeypatch):
    arguments = ["index", "--collection", str(collection), "--index", str(tmp_path / "index")]

    def killed(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build, "CHECKPOINT_SECONDS", -1)
        patch.setattr(build._CollectionIndexer, "_check_duplicates", killed)
        assert main([*arguments, "--language", "de"]) == 130
    capsys.readouterr()
    assert main([*arguments, "--language", "sw", "--resume"]) == 1
    assert "cannot be continued, because settings, language changed since; " in capsys.readouterr().err
    assert main([*arguments, "--language", "sw", "--replace"]) == 0  # with the average length of its own terms
    manifest = Manifest.read(tmp_path / "index")
    assert (manifest.language, manifest.settings["average_length"]) == ("sw", 18 / 4)


def test_a_hybrid_takes_the_language_for_its_bm25(collection, tmp_path, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr(document_encoders, "_model_encoder", lambda *_: StandInEncoder())
        build_index(collection, tmp_path / "index", "bm25+some/model", bm25={"language": "de"})
    assert Manifest.read(tmp_path / "index").language == "de"
    with ImpactReader(tmp_path / "index") as reader:
        assert reader.document_frequencies(["haus", "hau", "@häuser", "@haus"]) == [2, 0, 1, 1]
    encoded = encode_collection(collection, tmp_path / "vectors", "bm25+mini", language="de").parent
    (in_shards, _) = encode_in_shards(collection, tmp_path / "sharded", "bm25+mini", 2, language="de")
    for vectors in (encoded, in_shards.parent):
        manifest = build_index(vectors, tmp_path / f"of {vectors.name}", "bm25+mini")
        assert manifest.language == "de"
        assert found(tmp_path / f"of {vectors.name}", "Häuser", model_weight=0) == ["d1", "d3"]
    said = "mini was trained on English; take bm25 alone for --language de, or a model of that language"
    assert [text for text in caplog.messages if "mini" in text and "docs" not in text] == [said] * 4
    message = refusal(encode_collection, collection, tmp_path / "v", "mini", language="de", error=EncodingError)
    assert message == "mini: has a vocabulary of its own, so --language, which is for bm25+MODEL, has no use"


def test_the_models_of_a_hybrid_are_english(collection, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(document_encoders, "_model_encoder", lambda *_: StandInEncoder())
    for name in ("bm25+mini+latent:l", "bm25+latent", "bm25+latent:mini"):
        build_index(collection, tmp_path / name, name, bm25={"language": "de"})
    said = "{} was trained on English; take bm25 alone for --language de, or a model of that language"
    assert [one for one in caplog.messages if "English" in one] == [said.format("mini"), said.format("latent")]


def test_plain_words_are_read_in_english(german, capsys):
    assert main(["search", "--index", str(german), "--query", "Häuser", "--read", "model"]) == 2
    said = f"--read model reads English, and the language of {german} is de; write an expression, or give --read llm "
    assert said in capsys.readouterr().err
