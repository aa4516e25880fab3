#!/usr/bin/env bash
# In Ray, a caller that cancels a running call of an actor waits for its end, and gets nothing.
#
# Versions:  ray 2.60.0, Python 3.11.
# Guess:     `ray.cancel` ends the wait: as with a task, `ray.get` raises TaskCancelledError at once, or the call goes on
#            and its answer arrives.
# Behaviour: the method of an actor is not interrupted. It can only ask `is_canceled()` of its runtime context, which
#            Ray has since 2.54. `ray.get` waits until the method returns by itself, then raises TaskCancelledError, and
#            what the method returned is lost. A task (a function) is interrupted, and `ray.get` raises at once.
# Seen, of calls of 6 s that are cancelled after 1 s:
#            task         get raised TaskCancelledError after 0.0 s, ended: False
#            actor call   get raised TaskCancelledError after 5.0 s, ended: True
# Why it matters: of two equal requests to two actors, the slower one is cancelled. Whoever waits for both, or asks for
#            the answer of the cancelled one in case it is there, waits as long as without the cancellation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q ray==2.60.0
cat > "$folder/run.py" <<'PYTHON'
import sys
import time
from pathlib import Path

import ray

SECONDS = 6
ended = Path(sys.argv[1])


def work(mark):
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        time.sleep(0.05)
    (ended / mark).touch()
    return "the answer"


class Actor:
    def work(self, mark):
        return work(mark)

    def is_up(self):
        return True


def waited(reference):
    """The error of a call that is cancelled after a second, and the seconds until it comes."""
    time.sleep(1)
    ray.cancel(reference)
    begun = time.monotonic()
    try:
        return str(ray.get(reference)), time.monotonic() - begun
    except ray.exceptions.TaskCancelledError:  # or a RayTaskError that is also one
        return "TaskCancelledError", time.monotonic() - begun


ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
ray.get(ray.remote(lambda: None).remote())  # a process has started
actor = ray.remote(max_concurrency=2)(Actor).remote()
ray.get(actor.is_up.remote())
seen = {"task": waited(ray.remote(max_retries=0)(work).remote("task"))}
seen["actor call"] = waited(actor.work.remote("actor call"))
for what, (error, seconds) in seen.items():
    print(f"{what:12} get raised {error} after {seconds:.1f} s, ended: {(ended / what).exists()}")
assert {error for error, _ in seen.values()} == {"TaskCancelledError"}
assert seen["task"][1] < SECONDS - 2 and not (ended / "task").exists()
assert seen["actor call"][1] > SECONDS - 2 and (ended / "actor call").exists()
PYTHON
RAY_USAGE_STATS_ENABLED=0 "$folder/venv/bin/python" "$folder/run.py" "$folder"
