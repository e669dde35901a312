"""Games: rules compiled to trees, with the cards dealt beside them."""
