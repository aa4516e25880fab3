#!/usr/bin/env bash
# mcp 2.3.0, class MCPServer: a text argument of a tool that is declared `str | None` is parsed as JSON.
#
# Guess: an argument that is declared as text, optional or not, reaches the function as the text that the client sent.
#
# Behaviour: only an argument declared exactly `str` does. For any other type the server runs json.loads on the text, and
# takes a list, an object or null that it finds there in place of the text. So
#   - a filter as JSON text, as search engines write it, is refused ("Input should be a valid string"), although the
#     tool's schema says that it is a string and a validating client has passed it;
#   - the text "null" becomes None: a search with this text as its filter runs without a filter, and says nothing;
#   - a text that is no JSON, such as genre=war, passes unchanged, so that an ordinary test shows none of this.
# The same values pass unchanged if the parameter is `str` with an empty default.
#
# Output seen:
#   exact     {"genre": "war"}   filter is '{"genre": "war"}'
#   optional  {"genre": "war"}   refused, though valid for the tool's schema
#   exact     null               filter is 'null'
#   optional  null               filter is None
#   exact     [7]                filter is '[7]'
#   optional  [7]                refused, though valid for the tool's schema
#   exact     genre=war          filter is 'genre=war'
#   optional  genre=war          filter is 'genre=war'
#
# Why it matters: nearly every search tool has an optional filter, and many take it as JSON text. An agent sees a refusal
# that contradicts the schema, or gets documents that the filter should have left out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mcp==2.3.0 jsonschema==4.26.0
cat > "$folder/try.py" <<'PYTHON'
import logging

import anyio
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.server.mcpserver import MCPServer

logging.disable()
server = MCPServer("films")


@server.tool()
def exact(filter: str = "") -> str:
    return f"filter is {filter!r}"


@server.tool()
def optional(filter: str | None = None) -> str:
    return f"filter is {filter!r}"


async def main():
    seen = []
    async with Client(server) as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        for text in ('{"genre": "war"}', "null", "[7]", "genre=war"):
            for name in ("exact", "optional"):
                Draft202012Validator(schemas[name]).validate({"filter": text})
                result = await client.call_tool(name, {"filter": text})
                told = result.content[0].text
                if result.is_error:
                    assert "Input should be a valid string" in told, told
                    told = "refused, though valid for the tool's schema"
                seen.append(told)
                print(f"{name:9} {text:18} {told}")
    refused = "refused, though valid for the tool's schema"
    assert seen[1::2] == [refused, "filter is None", refused, "filter is 'genre=war'"], "the behaviour has changed"
    assert seen[::2] == [f"filter is {text!r}" for text in ('{"genre": "war"}', "null", "[7]", "genre=war")]


anyio.run(main)
PYTHON
"$folder/venv/bin/python" "$folder/try.py"
