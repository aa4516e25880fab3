#!/usr/bin/env bash
# pydantic 2.14.3, with fastapi 0.165.0: the limits of an optional number with a validator are in no JSON Schema keyword.
#
# Guess: `Field(ge=1, le=1000)` is `minimum` and `maximum` in the JSON Schema, and so in OpenAPI and in the schema of a
# tool, whether the number is optional or not.
#
# Behaviour: it is, for an optional number, and for a number with a BeforeValidator or AfterValidator (one that refuses
# the spelling `1_0`, say). For both together the schema has pydantic's own names, "ge" and "le". JSON Schema ignores
# unknown keywords, so a validating client, a generated client and a language model know no limit, while the server
# still refuses the number. With the Field before the validator inside of the Annotated, the limits are right.
#
# Output seen:
#   required             {'maximum': 1000, 'minimum': 1, 'type': 'integer'}
#   optional             {'maximum': 1000, 'minimum': 1, 'type': 'integer'}
#   required, validator  {'maximum': 1000, 'minimum': 1, 'type': 'integer'}
#   optional, validator  {'ge': 1, 'le': 1000, 'type': 'integer'}
#   field first          {'maximum': 1000, 'minimum': 1, 'type': 'integer'}
#   OpenAPI of ?depth    {'ge': 1, 'le': 1000, 'type': 'integer'}
#   depth=0: valid for the schema; the server answers 422
#
# Why it matters: the depth of a ranking and its cut-offs are such optional numbers. A client that trusts the schema asks
# for 10,000 hits and is refused, and a fuzzer that draws requests from the schema reports refusals as faults.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pydantic==2.14.3 fastapi==0.165.0 starlette==1.10.0 httpx2==2.16.2 jsonschema==4.26.0
cat > "$folder/try.py" <<'PYTHON'
from typing import Annotated

from fastapi import FastAPI, Query
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator
from pydantic import BaseModel, BeforeValidator, Field


def spelled(value):
    if isinstance(value, str) and not value.isdecimal():
        raise ValueError("digits only")
    return value


Whole = Annotated[int, BeforeValidator(spelled)]


class Search(BaseModel):
    required: int = Field(ge=1, le=1000)
    optional: int | None = Field(default=None, ge=1, le=1000)
    required_validator: Whole = Field(ge=1, le=1000)
    optional_validator: Whole | None = Field(default=None, ge=1, le=1000)
    field_first: Annotated[int, Field(ge=1, le=1000), BeforeValidator(spelled)] | None = None


app = FastAPI()


@app.get("/search")
def search(depth: Annotated[Whole | None, Query(ge=1, le=1000)] = None):
    return depth


def number(schema):
    """The number's part of a schema, without names and defaults."""
    part = schema.get("anyOf", [schema])[0]
    return {key: part[key] for key in sorted(part) if key not in ("title", "default")}


names = ("required", "optional", "required, validator", "optional, validator", "field first")
shown = dict(zip(names, map(number, Search.model_json_schema()["properties"].values())))
(parameter,) = app.openapi()["paths"]["/search"]["get"]["parameters"]
shown["OpenAPI of ?depth"] = number(parameter["schema"])
for name, schema in shown.items():
    print(f"{name:20} {schema}")
valid = Draft202012Validator(parameter["schema"]).is_valid(0)
status = TestClient(app).get("/search?depth=0").status_code
print(f"depth=0: {'valid' if valid else 'not valid'} for the schema; the server answers {status}")
right, wrong = {"maximum": 1000, "minimum": 1, "type": "integer"}, {"ge": 1, "le": 1000, "type": "integer"}
assert list(shown.values()) == [right, right, right, wrong, right, wrong], "the behaviour has changed"
assert valid and status == 422
PYTHON
"$folder/venv/bin/python" "$folder/try.py"
