"""Run directories: content, identity, journals and checkpoints."""
