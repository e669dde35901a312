"""Stores named arrays in files: creates, maps, checksums, commits atomically and locks them."""
