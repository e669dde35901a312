"""Cards, hand strength, hand ranges and card abstractions: everything that maps cards to buckets."""
