"""Values of folds and showdowns for whole ranges, with card removal by inclusion and exclusion.

`range_values` computes values of each hand, at many terminals of a street tree together; `board_values` does so on full
boards.  `pair_values` computes the expected chips of pairs of ranges.  `balances` precomputes all-ins before the river.
"""
