"""Sessions of training: worker processes, checkpoints, evaluations and limits."""
