"""Requests that are drawn from the server's own description: no answer is a failure of the server."""

import film_index
import pytest
import served
from hypothesis import HealthCheck, given, settings

schemathesis = served.tool("schemathesis", "requests are drawn by schemathesis")

from schemathesis import checks  # noqa: E402  # absent where the line above ends the module

CHECKS = (checks.not_a_server_error, checks.response_schema_conformance, checks.content_type_conformance)

schemathesis.serializer.alias("application/jsonl", "text/plain")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    folder = film_index.build(tmp_path_factory.mktemp("described"), store_raw=True)
    with served.serving("--index", f"films={folder}") as server:
        yield schemathesis.openapi.from_url(f"{server.url}/openapi.yaml")


def test_no_request_makes_the_server_fail(description):
    operations = [result.ok() for result in description.get_all_operations()]
    assert len(operations) == 13

    def check(case):
        if "index" in case.path_parameters:
            case.path_parameters["index"] = "films"
        case.call_and_validate(checks=CHECKS)

    for operation in operations:
        quick = settings(max_examples=15, suppress_health_check=list(HealthCheck))
        quick(given(case=operation.as_strategy())(check))()
