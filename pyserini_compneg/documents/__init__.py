"""Collections: files of documents and files of vectors."""
