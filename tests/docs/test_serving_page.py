import re
from pathlib import Path

import film_index
import pytest
import served
import yaml

from pyserini_compneg.serve.settings import Limits, read_server_settings

PAGE = (Path(__file__).parents[2] / "docs/how-to/serving.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with served.make_client(film_index.build(tmp_path_factory.mktemp("page"), store_raw=True)) as client:
        yield client


def test_routes(client):
    described = yaml.safe_load(client.get("/openapi.yaml").text)["paths"]
    listed = re.findall(r"^\| `(GET|POST|PUT|DELETE) (\S+)`", PAGE, re.MULTILINE)
    assert {(method.lower(), path) for method, path in listed} == {
        (method, path) for path, methods in described.items() for method in methods
    }
    for path in ("/", "/docs", "/openapi.yaml", "/openapi.json", "/health", "/metrics"):
        assert f"`{path}`" in PAGE
        assert client.get(path).status_code == 200


def test_every_status_of_an_error_has_its_reason(client):
    page = (Path(__file__).parents[2] / "docs/reference/errors.md").read_text(encoding="utf-8")
    routes = yaml.safe_load(client.get("/openapi.yaml").text)["paths"].values()
    described = {status for methods in routes for route in methods.values() for status in route["responses"]}
    before_routes = {"408", "421", "431"}
    assert {*re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == (
        described - {"200", "206", "304", "default"}
    ) | before_routes


def test_parameters(client):
    described = yaml.safe_load(client.get("/openapi.yaml").text)["paths"]["/v1/{index}/search"]["get"]["parameters"]
    assert {one["name"] for one in described} - {"index"} <= set(re.findall(r"`(\w+)`", PAGE))


def test_the_file(tmp_path):
    (text,) = re.findall(r"^    indexes:\n(?:    .*\n)+", PAGE, re.MULTILINE)
    (tmp_path / "server.yaml").write_text(text)
    settings = read_server_settings(tmp_path / "server.yaml")
    assert list(settings.indexes) == ["films", "papers"]
    assert (settings.api_keys, settings.write_keys) == (("a-secret-of-yours",), ("another-secret",))
    assert settings.limits == Limits()


def test_the_example(client):
    (path,) = re.findall(r"curl 'http://127.0.0.1:8081(.*)'", PAGE)
    assert len(client.get(path).json()["candidates"]) == 1
