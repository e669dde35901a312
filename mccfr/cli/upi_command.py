"""The command that speaks PioSOLVER's text protocol: upi."""

import sys

import rich_click as click


@click.command("upi")
def upi() -> None:
    """Speak PioSOLVER's text protocol (UPI) on stdin and stdout.

    Programs that speak it can set ranges, board and bet sizes, solve this game, and read strategies along its tree.

    Example: printf 'set_range OOP AA' | mccfr upi
    """
    from mccfr.upi import serve

    serve(sys.stdin, sys.stdout)
