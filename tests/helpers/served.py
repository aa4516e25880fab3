"""Servers: in this process, and in one of their own."""

import json
import os
import re
import threading
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import film_index
import pytest
from starlette.testclient import TestClient

from pyserini_compneg.serve.app import create_app
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.served_index import ServedIndex
from pyserini_compneg.serve.settings import Limits, ServedIndexSettings, ServerSettings


def tool(name, reason):
    """A module that tests need. Without it they are skipped, but never on the line of CI that has all tools."""
    if "CI" not in os.environ or find_spec("torch") is None:
        pytest.importorskip(name, reason=reason)
    return import_module(name)


def make_client(
    folder, *keys, encoder=None, versions=None, limits=None, write_keys=(), origins=(), hosts=None, **options
):
    """A client of a server in this process, which calls the index ``films``."""
    index = ServedIndexSettings(
        path=str(folder), encoder=encoder, versions=versions, follows=options.pop("follows", None)
    )
    indexes = {"films": ServedIndex("films", index)}
    options.setdefault("timeout", 120)  # a busy machine is no fault of a search
    given = {"api_keys": keys} if keys else {}
    given |= {"copy_keys": options.pop("copy_keys")} if "copy_keys" in options else {}
    given |= {"write_keys": tuple(write_keys), "allowed_origins": origins, "limits": limits or Limits()}
    app = create_app(indexes, ServeOptions(**options), ServerSettings(indexes={}, **given), hosts)
    return TestClient(app, raise_server_exceptions=False)


class Server:
    """A running server.

    Attributes:
        process: The process.
        url: Where it listens.
        log: The lines that it has written on standard error.
    """

    def __init__(self, *arguments, **options):
        options.setdefault("module", "pyserini_compneg")
        self.process = film_index.start("serve", "--port", 0, "--timeout", 120, *arguments, **options)
        self.log, self.url = [], None
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            if found := re.search(r"listening at (http://[\w.:\[\]]+)", line):
                self.url = found[1]
                break
        assert self.url, self.log
        self._listener = threading.Thread(
            target=lambda: self.log.extend(line.rstrip("\n") for line in self.process.stderr)
        )
        self._listener.start()

    def get(self, path, data=None, **headers):
        """Status and JSON of an answer; data makes it a POST."""
        try:
            with urlopen(Request(self.url + path, data, headers), timeout=120) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)

    def stop(self, signal):
        """Sends a signal, and returns the exit code, when the log is whole."""
        self.process.send_signal(signal)
        code = self.process.wait(60)
        self._listener.join(60)
        return code


@contextmanager
def serving(*arguments, **options):
    """Runs ``compneg serve`` for as long as the context lasts."""
    server = Server(*arguments, **options)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
