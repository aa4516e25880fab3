"""Topics and relevance judgements."""
