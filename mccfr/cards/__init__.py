"""Cards dealt outside of a game's betting tree: none, listed hands and boards, or a full deck."""
