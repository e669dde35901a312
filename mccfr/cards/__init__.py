"""Cards dealt beside a game's tree: none, listed hands and boards, or the full hold'em deck."""
