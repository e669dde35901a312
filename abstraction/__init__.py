"""Cards, hand strength, ranges and (later) card abstractions: everything that maps cards to buckets."""
