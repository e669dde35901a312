"""Sessions: each trains a run from its newest checkpoint, if any, to a limit, a goal or a signal."""
