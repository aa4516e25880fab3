"""Searches of an index on a cluster, on the head's host, in a process of its own: Ray and Java share none with tests.

Run as a program it obeys a line of JSON at a time, ``[ORDER, {OPTIONS}]``, and answers each with a line: the functions
of ``Load``. It ends with its standard input.
"""

import json
import pickle
import sys
import threading
import time
from contextlib import closing
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from pyserini_compneg.cluster import RayCluster, ShardedImpactSearcher
from pyserini_compneg.expression import format_expression
from pyserini_compneg.lucene.cancellation import Cancellation
from pyserini_compneg.search import Hit
from pyserini_compneg.support.errors import CompNegError


class Load:
    """The searches, in the process that runs them.

    Args:
        address: The cluster.
        answers: A pickle of pairs of a query and its hits.
    """

    def __init__(self, address, answers):
        self._cluster = RayCluster(address)
        self._wanted = pickle.loads(Path(answers).read_bytes())
        self._searcher, self._threads, self._found = None, [], []
        self._stopped = threading.Event()

    def open(self, index, hits, **options):
        self.close()
        self._hits = hits
        self._searcher = ShardedImpactSearcher(index, ray=self._cluster.address, **options)

    def ask(self, url, hits):
        """Has a server search instead."""
        self.close()
        self._hits, self._searcher = hits, Served(url)

    def close(self):
        if self._searcher is not None:
            self._searcher.close()
            self._searcher = None

    def hosts(self):
        """The names of the hosts that the cluster takes for alive."""
        return [node["NodeManagerHostname"] for node in self._cluster.ray.nodes() if node["Alive"]]

    def start(self, threads):
        """Begins to search in a loop."""
        self._stopped.clear()
        numbers = count()
        self._threads = [threading.Thread(target=self._loop, args=(numbers,)) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _loop(self, numbers):
        while not self._stopped.is_set():
            self._found.append(self.search(next(numbers)))

    def taken(self):
        """The searches that have ended since this was asked before."""
        found, self._found = self._found, []
        return found

    def stop(self):
        """Waits for the last searches, and returns those that were not taken."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        return self.taken()

    def search(self, number=0, seconds=None):
        """Searches for one of the queries: when it began and ended, what is wrong with the answer, and the error."""
        query, hits = self._wanted[number % len(self._wanted)]
        wrong = error = ""
        began = time.monotonic()
        try:
            if seconds is None:
                found = self._searcher.search(query, k=self._hits)
            else:
                with Cancellation(seconds).applied():
                    found = self._searcher.search(query, k=self._hits)
        except Exception as cause:  # also Ray's, which must not reach anybody
            error = f"{'' if isinstance(cause, CompNegError) else type(cause).__name__ + ': '}{cause}"
        else:
            if found != hits:
                wrong = format_expression(query)
        return began, time.monotonic(), wrong, error


class Served:
    """An index at its URL."""

    def __init__(self, url):
        self._host, self._path = urlsplit(url).netloc, urlsplit(url).path

    def search(self, query, k):
        with closing(HTTPConnection(self._host, timeout=60)) as connection:
            asked = urlencode({"query": format_expression(query), "hits": k})
            connection.request("GET", f"{self._path}/search?{asked}")
            answer = connection.getresponse()
            content = answer.read().decode()
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {content}")
        return [Hit(found["docid"], found["score"]) for found in json.loads(content)["candidates"]]

    def close(self):
        pass


class Remote:
    """A ``Load`` in another process: its functions are attributes."""

    def __init__(self, host, address, answers, said):
        pipes = {"stdin": -1, "stdout": -1, "stderr": said}
        self.process = host.open(sys.executable, __file__, address, answers, text=True, **pipes)
        self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the process that searches has ended")
        return json.loads(line)

    def __getattr__(self, order):
        def obeyed(**options):
            self.process.stdin.write(f"{json.dumps([order, options])}\n")
            self.process.stdin.flush()
            return self._answer()

        return obeyed

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()


def main():
    load = Load(*sys.argv[1:])
    print(json.dumps(None), flush=True)
    for line in sys.stdin:
        order, options = json.loads(line)
        print(json.dumps(getattr(load, order)(**options)), flush=True)
    load.close()


if __name__ == "__main__":
    main()
