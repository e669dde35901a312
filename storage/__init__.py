"""Stores named arrays in files and shared memory: creates, maps, checks, locks and commits them."""
