"""Public chance sampling and CFR-BR: one sampled board an iteration, all hands of both players."""
