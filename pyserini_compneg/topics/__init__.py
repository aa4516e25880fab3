"""Files of queries: topics in, composed queries and runs out."""

from pyserini_compneg.topics.topics import Topic, read_topics

__all__ = ["Topic", "read_topics"]
