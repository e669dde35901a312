"""Tables of regrets and strategy sums: layout, discounting, and the strategies computed from them."""
