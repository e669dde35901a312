"""Values of folds and showdowns for whole ranges, with card removal by inclusion and exclusion.

`values` handles each hand for many lines of a street tree; `board_values` the same on full boards.  `pair_values`
computes the expected chips of pairs of ranges.
"""
