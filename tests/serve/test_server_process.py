"""The command: a server in a process of its own, stopped, killed, and with an index that is replaced."""

import signal
import threading
import time
from contextlib import suppress

import film_index
import pytest
import served
from json_lines import write_jsonl

from pyserini_compneg.commands.serve import main
from pyserini_compneg.index import build_index

SEARCH = "/v1/index/search?query=spy"


@pytest.fixture
def folder(tmp_path):
    return film_index.build(tmp_path, store_raw=True)


def docids(server):
    status, answer = server.get(SEARCH)
    assert status == 200
    return [candidate["docid"] for candidate in answer["candidates"]]


@pytest.mark.slow
def test_a_replaced_index_is_reloaded_and_a_signal_ends_the_server_after_its_answers(folder, tmp_path):
    with served.serving("--index", folder) as server:
        before = docids(server)
        assert set(before) == {"d1", "d2", "d3"}
        build_index(
            write_jsonl(tmp_path / "new.jsonl", {"id": "n1", "contents": "a spy"}), folder, existing="overwrite"
        )
        until = time.monotonic() + 60
        while (now := docids(server)) == before and time.monotonic() < until:
            time.sleep(0.05)
        assert now == ["n1"]
        assert server.get("/health")[1]["indexes"] == {"index": 1}
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(server.get(SEARCH)[0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        while not statuses:
            time.sleep(0.001)
        assert server.stop(signal.SIGTERM) == 143
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}
    assert "info: index index: reloaded, 1 documents" in server.log
    assert server.log[-1] == "terminated"
    assert not any("Traceback" in line for line in server.log)


@pytest.mark.slow
@pytest.mark.kill
def test_a_killed_server_starts_again_at_another_address_and_guards_that_too(folder):
    with served.serving("--index", folder) as server:
        assert server.get(SEARCH)[0] == 200
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    with served.serving("--index", f"films={folder}", "--host", "127.0.1.1") as server:
        assert server.get("/v1/films/search?query=western")[0] == 200
        assert server.get("/health", Host="evil.example")[0] == 421


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "settings", "warning"),
    [
        ("0.0.0.0", "", "may search, because the settings have no api_keys: "),
        ("0.0.0.0", "api_keys: []", "api_keys is empty, so nobody may search until it has a key"),
        ("0.0.0.0", "api_keys: [a-long-key]", None),
        ("127.0.0.1", "", None),
    ],
)
def test_a_server_that_others_reach_warns_once_if_it_has_no_keys(folder, tmp_path, host, settings, warning):
    (tmp_path / "server.yaml").write_text(f"indexes: {{index: {folder}}}\n{settings}\n")
    with served.serving("--config", tmp_path / "server.yaml", "--host", host) as server:
        assert server.stop(signal.SIGTERM) == 143
    warned = [line for line in server.log if line.startswith("warning: ")]
    assert len(warned) == (warning is not None)
    assert not warned or warning in warned[0]


@pytest.mark.slow
def test_no_request_ends_the_process_and_the_log_is_json(folder):
    """The stack of the main thread is small beside Java, and code in C that goes down by recursion ends the process."""
    with served.serving("--index", folder, "--log-format", "json") as server:
        assert server.get(f"/v1/index/search?query={'%F0%9F%90%A6' * 8000}")[0] == 200
        assert server.get(f"/v1/index/search?query={'a' * 8001}")[0] == 400
        with suppress(OSError):  # refused before all of it is read
            assert server.get(f"/v1/index/search?query={'a' * 1_000_000}")[0] == 431
        for depth in (110, 200, 400, 900):
            nested = "[" * depth + "]" * depth
            trees = ['{"sum":[' * depth + "0" + "]}" * depth, '{"union":["a",' * depth + '"b"' + "]}" * depth]
            bodies = [f'{{"query":"spy","id":{nested}}}', f'{{"query":"spy","filter":{{"a":{nested}}}}}']
            bodies += [f'{{"vector":{{"a":{nested}}}}}', f'{{"query_tokens":{{"a":{nested}}}}}']
            bodies += [f'{{"score":{trees[0]}}}', f'{{"expression":{trees[1]}}}']
            for body in bodies:
                status, answer = server.get("/v1/index/search", data=body.encode())
                assert status in (200, 400), (body[:40], depth, answer)
        assert server.get(SEARCH)[0] == 200
        assert server.stop(signal.SIGINT) == 130
    *_, last = (line for line in server.log if '"path"' in line)
    assert '"query": "query=spy", "status": 200' in last


@pytest.mark.slow
def test_the_log_has_what_failed_inside(folder):
    code = "import sys; from pyserini_compneg.serve import answers; answers.document_answer = lambda *_: 1 / 0; "
    code += "from pyserini_compneg.commands.main import main; sys.exit(main(sys.argv[1:]))"
    with served.serving("--index", folder, code=code) as server:
        assert server.get("/v1/index/doc/d1") == (500, {"error": "Internal server error"})
        assert server.stop(signal.SIGTERM) == 143
    assert any("ZeroDivisionError" in line for line in server.log)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "name an index with --index, or a file of indexes with --config\nsee "),
        (("--index", "nowhere/index"), "nowhere/index: no such index folder"),
        (("--index", "a b=x"), "an index is named by up to 64 letters"),
        (("--config", "nowhere.yaml"), "nowhere.yaml: cannot be read: no such file or directory"),
        (("--index", "x", "--host", "no host"), "--host no host --port 8081: cannot listen there: "),
        (("--index", "x", "--port", "70000"), "argument --port: must be a whole number from 0 to 65535, got 70000"),
    ],
)
def test_wrong_usage(arguments, error, capfd):
    assert main(arguments) == 2
    assert capfd.readouterr().err.lower().startswith(f"error: {error}".lower())
