"""Answers in place of the hosts where Anserini 2 and Pyserini 2 look up what prebuilt indexes there are.

Anserini 2 does so whenever it opens an index, even a local one, and so needs a network for each search. The server is a
proxy on this machine, with a certificate of its own.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from local_server import Handler, serving

from pyserini_compneg.lucene.java_home import find_java

HOSTS = ("api.github.com", "raw.githubusercontent.com")
PASSWORD = "changeit"


class MetadataServer:
    """A running server.

    Attributes:
        files: What is found where: the end of a path, and the records to answer with, the latest first. Elsewhere there
            are none.
        java: System properties for a Java that is to ask here.
        environment: Variables for a process that is to ask here, a Java or a Python.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.files: dict[str, object] = {"/contents/lucene": _LISTING}
        self.java = {
            "https.proxyHost": "127.0.0.1",
            "https.proxyPort": str(port),
            "javax.net.ssl.trustStore": str(folder / "trusted.p12"),
            "javax.net.ssl.trustStorePassword": PASSWORD,
        }
        self.environment = {
            "JAVA_TOOL_OPTIONS": " ".join(f"-D{name}={value}" for name, value in self.java.items()),
            "HTTPS_PROXY": f"http://127.0.0.1:{port}",
            "SSL_CERT_FILE": str(folder / "certificate.pem"),
        }

    def answer(self, path: str) -> bytes:
        path = path.partition("?")[0]
        found = (self.files[end] for end in reversed(self.files) if path.endswith(end))
        return json.dumps(next(found, [])).encode()


_LISTING = [
    {"name": f"nothing-{kind}.json", "type": "file", "download_url": f"https://{HOSTS[1]}/nothing"}
    for kind in ("inverted", "impact", "flat", "hnsw")
]


@contextmanager
def metadata_server(folder: Path) -> Iterator[MetadataServer]:
    """Runs a server for as long as the context lasts; its certificate is made in the folder."""
    _make_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")

    class Answering(Handler):
        def do_CONNECT(self) -> None:  # noqa: N802  # the name is http.server's
            self.send_response(200)
            self.end_headers()
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
            self.handle_one_request()
            self.close_connection = True

        def do_GET(self) -> None:  # noqa: N802
            self.reply(200, running.answer(self.path))

    with serving(Answering) as port:
        running = MetadataServer(folder, port)
        yield running


def _make_certificate(folder: Path) -> None:
    if not (openssl := shutil.which("openssl")):
        pytest.skip("openssl makes the certificate of the stand-in for Anserini's network")
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    make = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out certificate.pem"
    _run(f"{make} -subj /CN={HOSTS[0]} -addext subjectAltName={names}", folder)
    keytool = find_java().home / "bin" / "keytool"
    _run(f"{keytool} -importcert -noprompt -file certificate.pem -keystore trusted.p12 -storepass {PASSWORD}", folder)


def _run(command: str, folder: Path) -> None:
    subprocess.run(command.split(" "), cwd=folder, check=True, capture_output=True)


def ask_here(server: MetadataServer, java_class) -> None:
    """Lets the Java of this process fill its list of prebuilt indexes from the server, once and for all."""
    system = java_class("java.lang.System")
    for name, value in server.java.items():
        system.setProperty(name, value)
    for kind in ("Inverted", "Impact", "Flat", "Hnsw"):
        java_class(f"io.anserini.index.prebuilt.Prebuilt{kind}Index").get("nothing")
    for name in server.java:
        system.clearProperty(name)
