"""Games: rules compiled to trees; the cards of most poker games are kept outside of the tree."""
