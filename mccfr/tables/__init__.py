"""Tables of regrets and sums: their layout, how they are discounted, and the strategies they hold."""
