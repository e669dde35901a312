"""Public chance sampling: one board, all hands of both players."""
