"""Hosts that a cluster must refuse: without the index, with another one, with another package or token."""

import os
import shutil
import time
from pathlib import Path

from network_hosts import HostError

import pyserini_compneg
from pyserini_compneg.commands.demo import SAMPLE
from pyserini_compneg.index import build_sharded_index
from pyserini_compneg.lucene.shards import read_shards

DOCUMENTS, PACKAGE = SAMPLE / "documents.jsonl.gz", Path(pyserini_compneg.__file__).parent


def refusals(trial, home):
    """Hosts that must be refused: each message is one line that names the host."""
    victim = trial.hosts[1]
    folder = home / "refused"
    shutil.copytree(trial.index, folder)
    find = ["search", "--index", folder, "--query", "spy films", "--ray", trial.address]
    make = ["index", "--collection", DOCUMENTS, "--index", home / "made", "--shards", 4, "--ray", trial.address]
    build_sharded_index(DOCUMENTS, home / "other", len(read_shards(trial.index)))
    nothing = ["-t", "tmpfs", "tmpfs"]
    with victim.mounted(*nothing, folder):
        _refused(trial, "without the index", victim, *find)
    with victim.mounted("--bind", home / "other", folder):
        _refused(trial, "with another index", victim, *find)
    with victim.mounted(*nothing, DOCUMENTS.parent):
        _refused(trial, "without the collection", victim, *make)
    changed = home / "changed"
    shutil.copytree(PACKAGE, changed / PACKAGE.name, copy_function=os.symlink)
    source = changed / PACKAGE.name / "__init__.py"
    text = source.read_text()
    source.unlink()
    source.write_text(f"{text}# changed\n")
    victim.variables["PYTHONPATH"] = str(changed)
    victim.restart()
    _refused(trial, "with another package", victim, *find)
    victim.variables.clear()
    victim.restart()
    code, said = trial.said(*find)
    if code:
        trial.fault(f"a host that is whole again was refused: {said}")
    _tokens(trial, victim, find)


def _refused(trial, what, victim, *command):
    """Runs a command, which must fail with one line that names the host. Warnings of lost processes may precede."""
    began = time.monotonic()
    code, said = trial.said(*command)
    print(f"{what}: {time.monotonic() - began:.0f} s, exit code {code}: {said}", flush=True)
    errors = [line for line in said.splitlines() if not line.startswith("warning: ")]
    if not code or len(errors) != 1 or victim.name not in errors[0]:
        trial.fault(f"{what}: this is no line of an error that names {victim.name}")


def _tokens(trial, victim, find):
    """A cluster with a token: a host and a command that have another one, or none."""
    for host in reversed(trial.hosts):
        host.kill()
    trial.network.variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64}
    trial.network.start()
    code, said = trial.said(*find)
    print(f"with the token: exit code {code}: {said}", flush=True)
    if code:
        trial.fault("the token was refused")
    victim.kill()
    others = ({"RAY_AUTH_TOKEN": "b" * 64}, {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""})
    for what, variables in zip(("another token", "no token"), others, strict=True):
        victim.variables = variables
        began = time.monotonic()
        try:
            victim.start()
        except HostError as error:
            print(f"a host with {what}: {time.monotonic() - began:.0f} s: {error}", flush=True)
            if "Authentication token" not in str(error):
                trial.fault(f"a host with {what}: the last line is not about the token")
        else:
            trial.fault(f"a host with {what} was let in")
        victim.variables = {}
        trial.hosts[0].variables = variables
        code, said = trial.said(*find)
        trial.hosts[0].variables = {}
        print(f"a command with {what}: exit code {code}: {said}", flush=True)
        if not code or len(said.splitlines()) != 1 or "token" not in said:
            trial.fault(f"a command with {what}: no line about the token")
