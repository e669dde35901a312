"""PioSOLVER's text protocol (UPI) for hold'em endgames, for its scripts and clients.

tree_lines         parses betting lines
node_names         names the nodes of the tree
node_values        computes EV and equity
tree_files         reads and writes solved trees
background_solver  runs the solver
upi_commands       implements the commands
protocol           reads commands and writes answers

Chips count from the beginning of the endgame.  Hands are in the order of combinations: 2d2c, 2h2c, 2h2d, ... AsAh.
"""

from mccfr.upi.protocol import serve

__all__ = ["serve"]
