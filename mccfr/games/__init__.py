"""The games: rules compiled to trees, with the cards that are dealt beside them."""
