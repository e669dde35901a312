"""Solvers over a public tree (betting tree times boards), with one vector entry for each hand."""
