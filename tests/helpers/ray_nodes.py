"""A cluster of two nodes on this machine, in a process of its own: Ray and Java share none that tests need.

Run as a program it starts the cluster, prints its address, and obeys a line at a time: ``remove`` ends the second node
at once, ``add`` starts another one. It ends with its standard input.
"""

import subprocess
import sys
from contextlib import contextmanager

NODES = 2


class Nodes:
    """The cluster, for tests."""

    def __init__(self, process):
        self.process = process
        self.address = self._line()

    def _line(self):
        line = self.process.stdout.readline().strip()
        assert line, "the cluster did not start"
        return line

    def tell(self, order):
        """Gives an order, and waits until it is carried out."""
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        assert self._line() == order

    def workers(self, title):
        """The processes of the nodes that do what has such a title now."""
        listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
        below = {self.process.pid}
        for _ in range(6):
            below |= {int(row[0]) for row in rows if int(row[1]) in below}
        return [int(row[0]) for row in rows if int(row[0]) in below and row[2].startswith(title)]


@contextmanager
def ray_nodes():
    """A running cluster."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, __file__], text=True, **pipes) as process:
        try:
            yield Nodes(process)
        finally:
            process.stdin.close()
            process.wait(60)


def main():
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 80 * 2**20}
    head = {"num_cpus": 1, "include_dashboard": False, **memory}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    added = cluster.add_node(num_cpus=1, **memory)
    print(cluster.address, flush=True)
    for order in sys.stdin:
        if order.strip() == "remove":
            cluster.remove_node(added, allow_graceful=False)
        else:
            added = cluster.add_node(num_cpus=1, **memory)
        print(order.strip(), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
