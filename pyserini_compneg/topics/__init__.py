"""Files of queries: reads topics, writes composed queries and runs."""

from pyserini_compneg.topics.batch import find_each, topic_query
from pyserini_compneg.topics.topic_runs import search_batch
from pyserini_compneg.topics.topics import Topic, decompose_topics, read_topics

__all__ = ["Topic", "decompose_topics", "find_each", "read_topics", "search_batch", "topic_query"]
