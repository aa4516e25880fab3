"""A server for indexes: the REST routes of Pyserini and more, tools for language models (MCP), and a page to search."""
