"""What is said where something is refused."""

import pytest

from pyserini_compneg.support.errors import InputError, QueryError


def refusal(read, *arguments, error=InputError, **options):
    """The message of the error that a call raises; one line, but for those that show where a query is wrong."""
    with pytest.raises(error) as caught:
        read(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message or isinstance(caught.value, QueryError)
    return message
