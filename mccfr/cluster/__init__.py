"""One run on several machines: strata shared out among them, and the first street added up at barriers."""
