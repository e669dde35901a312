"""PioSOLVER's text protocol (UPI) over spots of hold'em: its scripts and clients build, solve and walk trees here.

`lines` reads its lines, `tree` its nodes, `values` says what hands are worth there, `solving` solves, `session` has the
commands, `protocol` reads and answers.  Chips are those put in after the spot begins; hands have the order 2d2c, 2h2c,
2h2d, ... AsAh, which is that of combinations everywhere here.
"""

from mccfr.upi.protocol import serve

__all__ = ["serve"]
