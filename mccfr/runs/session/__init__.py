"""A session: from limits to checkpoints, the processes that train, and the loop that watches them."""
