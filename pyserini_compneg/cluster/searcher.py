"""Searches an index whose shards are on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_compneg.cluster.connection import LOCAL, RayCluster
from pyserini_compneg.cluster.shards import HEDGE, check_sharded, ray_reader
from pyserini_compneg.lucene.shards import read_shards
from pyserini_compneg.search import SignedImpactSearcher


class ShardedImpactSearcher(SignedImpactSearcher):
    """A :class:`SignedImpactSearcher` whose shards are searched by a Ray cluster, all at the same time.

    Queries are composed in this process. The hits and scores equal those of one index of all documents, to the last
    bit. Without a cluster, use ``SignedImpactSearcher``, which also opens an index in shards.

    Args:
        index_dir: The folder of an index in shards.
        *arguments: See :class:`SignedImpactSearcher`.
        ray: The address of the cluster; see :class:`RayCluster`.
        replicas: The number of processes that hold each shard.
        allow_partial: Continue without lost shards, with a warning. ``reader.lost`` names them.
        hedge: A shard is also asked in another of its processes after ``hedge`` times the time in which 95 of 100
            earlier answers came (not before 50 ms). The first answer counts.
        **options: See :class:`SignedImpactSearcher`.

    Raises:
        ClusterError: There is no such cluster, or Java was started before it.
        IndexReadError: A shard cannot be opened.

    Example:
        >>> with ShardedImpactSearcher("indexes/films", ray="local") as searcher:  # doctest: +SKIP
        ...     searcher.search("spy films NOT comedies", k=3)
    """

    def __init__(
        self,
        index_dir: str | Path,
        *arguments: Any,
        ray: str = LOCAL,
        replicas: int = 1,
        allow_partial: bool = False,
        hedge: float = HEDGE,
        **options: Any,
    ) -> None:
        if (folder := Path(index_dir)).is_dir():  # check before Ray starts, which takes long
            check_sharded(folder)
            read_shards(folder)
        self._cluster = RayCluster(ray)
        try:
            super().__init__(
                ray_reader(self._cluster, index_dir, replicas, allow_partial, hedge), *arguments, **options
            )
        except BaseException:
            self._cluster.close()
            raise

    def close(self) -> None:
        super().close()
        self._cluster.close()
