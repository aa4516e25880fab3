#!/usr/bin/env bash
# mcp 2.3.0: a server on standard input answers "Connection closed" to the calls that run when its input ends.
#
# Guess: `server < calls.jsonl > answers.jsonl` works as with any filter: the server reads all lines, answers them, and
# ends. The output is still open, so nothing prevents the answers.
#
# Behaviour: at the end of the input the library cancels the tools that run. Each of their calls is answered by the error
# -32000, "Connection closed", in any order, and the server ends with status 0. Which calls get a result depends on
# timing alone: here none, for each takes a second.
#
# Output seen:
#   input ends at once:        Connection closed, Connection closed, Connection closed (status 0)
#   input stays open:          hits of spy, hits of war, hits of western (status 0)
#
# Why it matters: a batch of topics that is piped into a search server gives a run of errors, or, with a fast server, a
# run with some topics missing. The status of the process does not say so. Keep the input open until all ids are
# answered.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mcp==2.3.0
cat > "$folder/server.py" <<'PYTHON'
import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("films")


@server.tool()
async def search(query: str) -> str:
    await anyio.sleep(1)  # a search
    return f"hits of {query}"


server.run("stdio")
PYTHON
cat > "$folder/try.py" <<'PYTHON'
import json
import subprocess
import sys

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "example", "version": "1"}}


def line(method, params, **number):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **number}) + "\n"


def said(answer):
    return answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"]


def answers(ends_at_once):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    server = subprocess.Popen([sys.executable, sys.argv[1]], **pipes)
    server.stdin.write(line("initialize", HELLO, id=0) + line("notifications/initialized", {}))
    for number, query in enumerate(("spy", "war", "western"), 1):
        server.stdin.write(line("tools/call", {"name": "search", "arguments": {"query": query}}, id=number))
    server.stdin.flush()
    if ends_at_once:
        server.stdin.close()
    lines = [json.loads(server.stdout.readline()) for _ in range(4)]
    if not ends_at_once:
        server.stdin.close()
    status = server.wait(60)
    return [said(one) for one in sorted(lines, key=lambda one: one["id"])[1:]], status


(closed, status), (answered, other) = answers(True), answers(False)
print(f"input ends at once:        {', '.join(closed)} (status {status})")
print(f"input stays open:          {', '.join(answered)} (status {other})")
assert closed == ["Connection closed"] * 3 and status == 0, "the behaviour has changed"
assert answered == ["hits of spy", "hits of war", "hits of western"] and other == 0
PYTHON
"$folder/venv/bin/python" "$folder/try.py" "$folder/server.py"
