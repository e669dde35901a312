"""Named arrays in files: create, map into memory, checksum, commit atomically, lock.  Nothing of games or cards."""
