"""Cards dealt outside of a game's tree: none, arrays of all hands and boards, or a full deck."""
