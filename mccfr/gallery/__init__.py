"""Reference algorithms: each file is one algorithm as its paper prints it, slow and simple.

Tests compare the fast solvers with them; the rest of the package does not import them.  A configuration runs one by the
name of its class, as a user's own algorithm: `algorithm = "mccfr.gallery.external:ExternalSampling"`.
"""
