"""PioSOLVER's text protocol (UPI) for spots of hold'em, for its scripts and clients.

lines     parses betting lines
tree      names the nodes
values    computes EV and equity
solving   runs the solver
session   implements the commands
protocol  reads commands and writes answers

Chips count from the beginning of the spot.  Hands are in the order of combinations: 2d2c, 2h2c, 2h2d, ... AsAh.
"""

from mccfr.upi.protocol import serve

__all__ = ["serve"]
