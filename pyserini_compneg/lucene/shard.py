"""A shard of an index: what it is asked, and the shard in this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from pyserini_compneg.lucene.reader import ImpactReader
from pyserini_compneg.lucene.shard_list import ShardEntry, checked_shard
from pyserini_compneg.support.errors import IndexFormatError, IndexReadError

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class Shard(Protocol):
    """A shard of an index, wherever it is.

    Attributes:
        folder: Its folder.
    """

    folder: Path

    def ask(
        self, question: Callable[Concatenate[ImpactReader, Asked], Answer], *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Callable[[], Answer]:
        """Begins to answer a question; what it returns waits for the answer.

        Args:
            question: A method of ``ImpactReader``, or another function of a module whose first argument is a reader.
            *args: Its other arguments.
            **kwargs: The same.

        Raises:
            IndexReadError: The shard does not answer any more; here, or when the answer is waited for.
        """

    def close(self) -> None:
        """Closes the shard; may be called twice."""


class LocalShard:
    """A shard in this process. It answers when the answer is waited for.

    Args:
        folder: Its folder.
        entry: What the list of the shards says of it.

    Raises:
        IndexReadError: It cannot be opened, or is another one.
    """

    def __init__(self, folder: Path, entry: ShardEntry) -> None:
        self.folder = folder
        checked_shard(folder, entry)
        try:
            self.reader = ImpactReader(folder)
        except IndexFormatError as error:
            raise IndexReadError(error.what, where=error.where, remedy=error.remedy) from None

    def ask(
        self, question: Callable[Concatenate[ImpactReader, Asked], Answer], *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Callable[[], Answer]:
        """See :class:`Shard`."""
        return partial(question, self.reader, *args, **kwargs)

    def close(self) -> None:
        """See :class:`Shard`."""
        self.reader.close()


OpenShard: TypeAlias = Callable[[Path, ShardEntry], Shard]
"""Opens the shard in a folder."""
