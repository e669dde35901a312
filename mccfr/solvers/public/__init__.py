"""Whole ranges at once over a public tree: betting tree times boards, one vector entry for each hand."""
