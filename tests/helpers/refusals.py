"""What is said where something is refused."""

import pytest

from pyserini_compneg.errors import CollectionError


def refusal(read, *arguments, error=CollectionError, **options):
    """The message of the error that a call raises."""
    with pytest.raises(error) as caught:
        read(*arguments, **options)
    return str(caught.value)
