"""Solvers over a public tree (betting tree times boards), with vectors over a player's hands."""
