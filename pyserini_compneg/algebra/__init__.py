"""Linear algebra of dense query vectors."""
