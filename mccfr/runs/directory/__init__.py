"""A run directory: what it holds, what identifies it, what its journals and checkpoints say."""
