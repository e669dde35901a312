"""What is dealt beside a game's tree: nothing, hands and boards that are listed, or the whole deck of hold'em."""
