import pytest
from refusals import refusal

from pyserini_compneg.serve.settings import ServedIndexSettings, named_indexes, read_server_settings


def test_pyserinis_keys(tmp_path):
    (tmp_path / "films").mkdir()
    (tmp_path / "server.yaml").write_text(
        "indexes:\n  films: films\n"
        "  papers: {path: some-prebuilt-index, index_type: impact, encoder: bm25, language: de}\n"
        "  counts: {path: films, model_weight: 0, latent_weight: 1}\n"
        "api_keys:\n  - a-long-key\nwrite_keys: [another-key]\n"
    )
    settings = read_server_settings(tmp_path / "server.yaml")
    assert settings.indexes == {
        "films": ServedIndexSettings(path=str(tmp_path / "films")),
        "papers": ServedIndexSettings(path="some-prebuilt-index", encoder="bm25", language="de"),
        "counts": ServedIndexSettings(path=str(tmp_path / "films"), model_weight=0, latent_weight=1),
    }
    assert (settings.api_keys, settings.write_keys) == (("a-long-key",), ("another-key",))


def test_the_last_write_key_may_go(tmp_path):
    (tmp_path / "server.yaml").write_text("indexes: {films: {path: x, versions: x*}}\nwrite_keys: []\n")
    assert read_server_settings(tmp_path / "server.yaml").write_keys == ()


FOLLOWS = "{url: 'http://a/v1/a', key: long-enough}"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("api_keys: []", "the key 'indexes' is missing"),
        ("indexes: {a: {encoder: bm25}}", "indexes.a: the key 'path' is missing"),
        ("indexes: {a: {path: x, encodr: y}}", "indexes.a: unknown key 'encodr'; did you mean encoder?"),
        ("indexes: {path: {path: x, encodr: y}}", "indexes.path: unknown key 'encodr'; did you mean encoder?"),
        ("indexes: {a: {path: x, index_type: faiss}}", "indexes.a.index_type: expected 'impact', got 'faiss'"),
        (
            "indexes: {a: {path: x, model_weight: -1}}",
            "indexes.a.model_weight: expected a number",
        ),
        (
            "indexes: {a: {path: x, language: xx}}",
            "indexes.a.language: no analysis for the language 'xx'; known",
        ),
        (
            "indexes: {a: {path: x, versions: x*}}",
            "indexes.a.versions lets requests with a write key switch the index, and there are no write_keys",
        ),
        (
            f"indexes: {{a: {{path: x, follows: {FOLLOWS}}}, b: {{path: ./x, follows: {FOLLOWS}}}}}",
            "two indexes follow into the same folder, /",
        ),
        (
            "indexes: {a: {path: x, versions: ../x*}}\nwrite_keys: [long-enough]",
            "indexes.a.versions is a pattern of names beside its folder, not of paths, got '../x*'",
        ),
        (
            "indexes: {a: {path: x, versions: x*, follows: {url: 'http://a/v1/a', key: long-enough}}}\nwrite_keys: []",
            "indexes.a follows another server, which says what is searched, so it has no versions",
        ),
        ("indexes: {a: {path: x, follows: {url: 'http://a/v1/a'}}}", "indexes.a.follows: the key 'key' is missing"),
        *(
            (
                f"indexes: {{a: {{path: x, follows: {{url: '{url}', key: long-enough}}}}}}",
                "indexes.a.follows.url: the address of an index is http:// or https://, a host without a password",
            )
            for url in (
                "films",
                "ftp://a/v1/a",
                "http://name:word@a/v1/a",
                "http:///v1/a",
                "http://a/v1/a?x=1",
                "http://a/v1/a#x",
                "http://a:70000/v1/a",
            )
        ),
        (
            f"indexes: {{a: {{path: /, follows: {FOLLOWS}}}}}",
            "indexes.a.path: a copy needs a folder with a name, and no mount point, got '/'",
        ),
        (
            f'indexes: {{a: {{path: "x\\0", follows: {FOLLOWS}}}}}',
            "indexes.a.path: a copy needs a folder with a name, and no mount point, got 'x\\x00'",
        ),
        ("indexes: {a: x}\ncopy_keys: [short]", "copy_keys[0]: an API key has 8 or more printable ASCII characters"),
        ("indexes: {a: x}\nlimits: {atoms: 0}", "limits.atoms: expected a number from 1, got 0"),
        ("indexes: {a: x}\nkeys: []", "unknown key 'keys'; did you mean api_keys?"),
        ("indexes: {a: x}\nwrite_keys: [short]", "write_keys[0]: an API key has 8 or more printable ASCII characters"),
        *(
            (
                f"indexes: {{a: x}}\nallowed_origins: ['{origin}']",
                "allowed_origins[0]: an origin is http:// or https://",
            )
            for origin in ("*", "app.example.org", "https://a.org/", "https://A.org", "https://a.org:443", "null")
        ),
        (f"indexes: {{a: x, b: {'x' * 300}}}", "indexes.b.path cannot be read: file name too long"),
        ("indexes: {a: x}\napi_keys: [short]", "api_keys[0]: an API key has 8 or more printable ASCII characters"),
    ],
)
def test_wrong_files(tmp_path, text, error):
    path = tmp_path / "server.yaml"
    path.write_text(text)
    assert refusal(read_server_settings, path).startswith(f"{path}: {error}")


def test_indexes_of_the_command_line():
    assert named_indexes(["indexes/films", "papers=indexes/other"]) == {
        "films": ServedIndexSettings(path="indexes/films"),
        "papers": ServedIndexSettings(path="indexes/other"),
    }


@pytest.mark.parametrize(
    ("indexes", "error"),
    [
        (["a/films", "b/films"], "--index: two indexes are named films; give one another name, --index NAME=DIR"),
        *(
            ([f"{name}=indexes/films"], "an index is named by up to 64 letters, digits and the signs")
            for name in ("a/b", "a b", "é", "..", "-a", "x" * 65)
        ),
    ],
)
def test_wrong_indexes_of_the_command_line(indexes, error):
    assert refusal(named_indexes, indexes).startswith(error)
