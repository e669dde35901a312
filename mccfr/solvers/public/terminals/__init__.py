"""What folds and showdowns are worth to whole ranges, with card removal by inclusion and exclusion.

`values`: of every hand, for many lines of a street tree; `board_values`: the same on full boards; `pair_values`: what
both ranges of many lines come to.
"""
