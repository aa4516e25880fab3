"""Encodes, indexes and searches shards on a Ray cluster."""

from pyserini_compneg.cluster.connection import RayCluster
from pyserini_compneg.cluster.searcher import ShardedImpactSearcher
from pyserini_compneg.cluster.tasks import RayRunner

__all__ = ["RayCluster", "RayRunner", "ShardedImpactSearcher"]
