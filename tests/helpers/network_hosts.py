"""Hosts of a small network on this machine, in namespaces: cut off, frozen, killed, or behind a slow or lossy link.

Each host has its own address, name, processes and folder /tmp/ray, and the files of this machine. A switch joins the
hosts. Everything ends with the process that made it, also if that process is killed: the namespaces have no names, and
the kernel removes them with their last process. Needs Linux, root, and the commands of iproute2 and util-linux.

Run as a program it is the relay of a link: it forwards frames with a delay and with losses.

    python tests/helpers/network_hosts.py PORT --delay 0.05 --jitter 0.02 --loss 0.01
"""

import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from film_index import environment

NET = "10.213.7"
"""The network of the hosts. It is theirs alone, so it may be in use elsewhere."""

PORT = 6379
START_SECONDS, STOP_SECONDS = 60, 15
_BRIDGE = "switch"
_PR_SET_PDEATHSIG = 1
_LIBRARY = ctypes.CDLL(None)


class HostError(Exception):
    """A host did not start, or its Ray did not."""


def lacking() -> str:
    """Why there can be no hosts here; empty if there can be."""
    if sys.platform != "linux" or os.geteuid():
        return "hosts in namespaces need Linux and root"
    if missing := [name for name in ("ip", "nsenter", "unshare", "hostname", "mount") if not shutil.which(name)]:
        return f"hosts in namespaces need the commands {', '.join(missing)} (Debian: iproute2, util-linux, hostname)"
    tried = "ip link add port0 type veth peer name port1 && ip link add switch type bridge && mount --bind /tmp /tmp"
    command = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", tried]
    done = subprocess.run(command, capture_output=True, text=True)
    return f"namespaces are not allowed here: {' '.join(done.stderr.split())}" if done.returncode else ""


def _die_with_parent() -> None:
    _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _process(*command, **options):
    """A process that ends with this one."""
    return subprocess.Popen([*map(str, command)], preexec_fn=_die_with_parent, **options)


def _holder(*namespaces):
    """A process that holds new namespaces."""
    ready = f"{' '.join(namespaces)} sh -c"
    process = _process("unshare", *ready.split(), "echo; exec sleep infinity", stdout=subprocess.PIPE)
    if not process.stdout.readline():
        raise HostError("no namespaces could be made")
    return process


def _run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        raise HostError(f"{' '.join(map(str, command))}: {' '.join(done.stderr.split())}")


def _ended(process):
    process.kill()
    process.wait()


def _namespace(pid, kind):
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/{kind}")


class Host:
    """A host: a part of the network that stays, and processes that can be killed and started again."""

    def __init__(self, network, number, cpus):
        self.network, self.number, self.cpus = network, number, cpus
        self.name, self.address, self.port = f"host{number}", f"{NET}.{number + 1}", f"port{number}"
        self.log = network.folder / f"{self.name}.log"
        self.variables: dict[str, str] = {}
        """Further variables of its processes."""
        self._holder = _holder("--net", "--uts", "--mount")
        self._machine = self._relay = None
        inside = self._enter()
        network.ip("link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self._holder.pid)
        network.ip("link", "set", self.port, "master", _BRIDGE, "up")
        for command in (
            *("ip link set lo up", f"ip address add {self.address}/24 dev eth0", "ip link set eth0 up"),
            *(f"hostname {self.name}", f"mount --bind {network.folder}/hosts /etc/hosts"),
        ):
            _run(*inside, *command.split())
        Path("/tmp/ray").mkdir(exist_ok=True)
        (network.folder / self.name).mkdir()
        _run(*inside, "mount", "--bind", network.folder / self.name, "/tmp/ray")

    def _enter(self, pid=0, *more):
        return ["nsenter", "--target", pid or self._holder.pid, "--net", "--uts", "--mount", *more]

    @property
    def is_head(self):
        return not self.number

    @contextmanager
    def mounted(self, *arguments):
        """Started again with something mounted over a folder, which this host alone sees."""
        _run(*self._enter(), "mount", *arguments)
        try:
            self.restart()
            yield
        finally:
            _run(*self._enter(), "umount", arguments[-1])

    def begin(self):
        """Starts the host's Ray node, without waiting for it."""
        head = ["--head", "--port", PORT, "--include-dashboard", "false"]
        where = head if self.is_head else ["--address", self.network.address]
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", *where, "--node-ip-address", self.address]
        ray += ["--num-cpus", self.cpus, "--object-store-memory", 80 * 2**20, "--disable-usage-stats", "--block"]
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with self.log.open("wb") as log:
            self._machine = _process(
                *(*self._enter(), *alone, *ray),
                env=self._environment(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def _environment(self):
        return environment(**{**self.network.variables, **self.variables})

    def start(self):
        """Starts the host's Ray node."""
        self.begin()
        self.wait()

    def wait(self):
        """Waits until the host's Ray node has started."""
        deadline = time.monotonic() + START_SECONDS
        while "Ray runtime started" not in (said := self.log.read_text(errors="replace")):
            if self._machine.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise HostError(f"{self.name} did not start: {' '.join(said.strip().splitlines()[-1:])}")
            time.sleep(0.1)

    def restart(self):
        """Starts the host's Ray node again, after it has told the cluster of its end."""
        _signal([pid for pid in self.processes() if "/raylet/raylet " in _title(pid)], signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._machine.wait(STOP_SECONDS)
        self.kill()
        self.start()

    @property
    def runs(self):
        return self._machine is not None and self._machine.poll() is None

    def _first(self):
        """The first process of the running host."""
        pid = self._machine.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def open(self, *command, **options):
        """A process on this running host, whose folder is ``/``: workers import what lies in a command's folder."""
        inside = self._enter(self._first(), "--pid", "--wdns=/")
        return _process(*inside, *command, env=self._environment(), **options)

    def processes(self, title=""):
        """The processes of the host, or those that have such a title."""
        if not self.runs:
            return []
        space = _namespace(self._first(), "pid")
        there = [int(name) for name in os.listdir("/proc") if name.isdigit() and _namespace(name, "pid") == space]
        return [pid for pid in there if _title(pid).startswith(title)]

    def freeze(self, title=""):
        """Stops all processes, or one that has such a title."""
        if title:
            os.kill(self.processes(title)[0], signal.SIGSTOP)
            return
        stopped: set[int] = set()
        while new := set(self.processes()) - stopped:  # those that start meanwhile, too
            _signal(new, signal.SIGSTOP)
            stopped |= new

    def thaw(self):
        if self.runs:
            _signal([self._machine.pid, *self.processes()], signal.SIGCONT)

    def cut(self):
        """Breaks the link to the other hosts."""
        self.network.ip("link", "set", self.port, "down")

    def join(self):
        """Restores the link."""
        self.network.ip("link", "set", self.port, "up")

    def kill(self):
        """Kills all processes. The kernel of the host stays, and refuses connections."""
        if self._machine is not None:
            if self.runs:
                with suppress(IndexError, OSError):
                    os.kill(self._first(), signal.SIGKILL)
            _ended(self._machine)
            self._machine = None

    def disturb(self, **how):
        """Puts a relay into the link, with a delay, jitter (seconds) and loss (a share)."""
        self.network.ip("link", "set", self.port, "nomaster")
        told = [word for name, value in how.items() for word in (f"--{name}", value)]
        self._relay = self.network.open(
            sys.executable, __file__, self.port, *told, stdout=subprocess.PIPE, env=environment()
        )
        if not self._relay.stdout.readline():
            raise HostError("the relay did not start")

    def calm(self):
        """Takes the relay out of the link."""
        _ended(self._relay)
        self._relay = None
        self.network.ip("link", "set", self.port, "master", _BRIDGE)

    def end(self):
        self.kill()
        if self._relay is not None:
            _ended(self._relay)
        _ended(self._holder)


class Network:
    """A switch with hosts. The first host is the head of the cluster."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.address = f"{NET}.1:{PORT}"
        self.variables = {"RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}
        self.hosts: list[Host] = []
        self._switch = _holder("--net")
        self.ip("link", "add", _BRIDGE, "type", "bridge")
        self.ip("link", "set", _BRIDGE, "up")

    def open(self, *command, **options):
        """A process at the switch."""
        return _process("nsenter", "--target", self._switch.pid, "--net", *command, **options)

    def ip(self, *arguments):
        _run("nsenter", "--target", self._switch.pid, "--net", "ip", *arguments)

    def lay(self, cpus):
        """Makes hosts, given the processors that each offers."""
        names = [f"127.0.0.1 localhost\n{NET}.{number + 1} host{number}" for number in range(len(cpus))]
        (self.folder / "hosts").write_text("\n".join(names) + "\n")
        for number, offered in enumerate(cpus):
            self.hosts.append(Host(self, number, offered))

    def start(self):
        """Starts all hosts, the head first."""
        head, *others = self.hosts
        head.start()
        for host in others:
            host.begin()
        for host in others:
            try:
                host.wait()
            except HostError:  # Ray gives a node 30 s, which are too few on a busy machine
                host.start()

    def end(self):
        for host in reversed(self.hosts):
            host.end()
        _ended(self._switch)


@contextmanager
def network(folder, cpus):
    """A network of running hosts, given the processors that each offers to Ray."""
    with ExitStack() as stack:
        made = Network(folder)
        stack.callback(made.end)
        made.lay(cpus)
        made.start()
        yield made


def _title(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _signal(pids, number):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


_TUNSETIFF, _IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x400454CA, 2, 0x1000, 0x4000
_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, _PACKET_VNET_HDR, _PACKET_MR_PROMISC = 263, 1, 15, 1
_ETH_P_ALL = 3
_MOST_BYTES = 2**17


def relay(port, delay, jitter, loss):
    """Forwards frames between a port that left the switch and a TAP device in its place.

    Each frame carries the header of virtio, because the kernel leaves its checksum and its division to the receiver.
    """
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    wire.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    wire.bind((port, 0))
    everything = struct.pack("IHH8s", socket.if_nametoindex(port), _PACKET_MR_PROMISC, 0, b"")
    wire.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, everything)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"tap-{port}"
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR))
    _run("ip", "link", "set", name, "master", _BRIDGE, "up")
    print("ready", flush=True)
    waiting: list[tuple[float, int, bool, bytes]] = []
    last = {False: 0.0, True: 0.0}  # a link keeps the order of its frames
    count = 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready = select.select([wire, tap], [], [], timeout)[0]
        now = time.monotonic()
        for source in ready:
            inward = source is wire
            if inward:
                frame, sender = wire.recvfrom(_MOST_BYTES)
                if sender[2] == socket.PACKET_OUTGOING:
                    continue
            else:
                frame = os.read(tap, _MOST_BYTES)
            if random.random() >= loss:
                count += 1
                last[inward] = max(last[inward], now + delay + random.uniform(0, jitter))
                heapq.heappush(waiting, (last[inward], count, inward, frame))
        while waiting and waiting[0][0] <= now:
            inward, frame = heapq.heappop(waiting)[2:]
            with suppress(OSError):  # a full queue loses frames
                if inward:
                    os.write(tap, frame)
                else:
                    wire.send(frame)


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("port")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--jitter", type=float, default=0.0)
    parser.add_argument("--loss", type=float, default=0.0)
    options = parser.parse_args()
    relay(options.port, options.delay, options.jitter, options.loss)


if __name__ == "__main__":
    main()
