"""Algorithms as their papers print them: one file each, slow and right, to be read and to compare fast ones with.

None of them is used by the rest of the package.  Each is run by the name of its class, as an algorithm of one's own is:
`algorithm = "mccfr.gallery.external:ExternalSampling"`.
"""
