"""What is said where something is refused."""

import pytest

from pyserini_compneg.support.errors import InputError, QueryError

EXISTS = "exists already; give --overwrite (existing='overwrite') to replace it, or another place"
KEPT = "the unfinished work is kept; add --resume (existing='resume') to continue it"
UNFINISHED = (
    "there is unfinished work; give --resume (existing='resume') to continue it, or --overwrite (existing='overwrite') "
    "to discard it"
)
START_ANEW = "start anew with --overwrite (existing='overwrite') and without --resume"


def refusal(read, *arguments, error=InputError, **options):
    """The message of the error that a call raises; one line, but for those that show where a query is wrong."""
    with pytest.raises(error) as caught:
        read(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message or isinstance(caught.value, QueryError)
    return message
