"""Values that go into an exported policy: what buckets win where streets begin."""

from mccfr.evaluation.hand_values import root_values
from mccfr.policy import Behaviour
from mccfr.policy.values import PolicyValues, StreetValues
from mccfr.runs.reporter import Reporter


def policy_values(source: Behaviour, boards: int, reporter: Reporter) -> PolicyValues:
    """What each bucket wins where a street begins, both playing a strategy from there on.

    boards  that are drawn in whole hold'em; elsewhere all are walked

    Raises `ValueError` for a game without cards beside its tree.
    """

    def report(done: int, total: int) -> None:
        reporter.phase(f"computing values, board {done:,} of {total:,}", done / total)

    found, exact = root_values(source, boards, progress=report)
    return PolicyValues([StreetValues(*one) for one in found], None if exact else boards)
