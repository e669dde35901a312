"""The algorithms that a run may be of, each answering for itself; `registry` is the only list of them."""
