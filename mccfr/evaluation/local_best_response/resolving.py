"""Local best response to a policy that solves its hands again from a street on (`mccfr.play.resolving`).

Until then the responder is the usual one.  When the street begins, all the places where the policy may be in its tree
become one: what it plays from there on depends on what both players have seen, and on its hand.
"""

from typing import Any

from mccfr.evaluation.local_best_response.dealt import Floats, ResponderDeal
from mccfr.evaluation.local_best_response.hand import Choose, PolicyRows, Ranges, Responder
from mccfr.evaluation.local_best_response.settings import Place, ResponderBetting
from mccfr.play.resolving.table import PublicState, Resolver


class ResolvedResponder(Responder):
    """Local best response in one seat, on a board that the deal knows already."""

    def __init__(
        self, lines: ResponderBetting, rows: PolicyRows, seat: int, choose: Choose, resolver: Resolver, cards: list[int]
    ) -> None:
        """`cards` of the whole board in order of dealing; others as `Responder`."""
        super().__init__(lines, rows, seat, choose)
        self._resolver, self._cards = resolver, cards
        dealt = resolver.seat.policy.game.cards
        self._known = [dealt.cards_on(street) for street in range(dealt.streets)]
        self._acted: list[tuple[Any, str, tuple[int, ...]]] = []

    def _board(self, street: int) -> tuple[int, ...]:
        return tuple(self._cards[: self._known[street]])

    def _follow(self, state: Any, action: str, ranges: Ranges, dealt: ResponderDeal) -> float:
        self._acted.append((state, action, self._board(state.street)))
        value = super()._follow(state, action, ranges, dealt)
        self._acted.pop()
        return value

    def _value(self, state: Any, ranges: Ranges, dealt: ResponderDeal) -> float:
        if state.street >= self._resolver.street and not _public(ranges):
            before = [acted for acted in self._acted if acted[0].street < self._resolver.street]
            begun = self._resolver.begin(1 - self._seat, before, state, self._board(state.street))
            ranges = {begun: sum(ranges.values())}  # type: ignore[dict-item]
        return super()._value(state, ranges, dealt)

    def _after(self, here: PublicState, action: str) -> Any:
        street = min(here.state.street + 1, len(self._known) - 1)
        return here.after(action, self._board(street))

    def taken_for(self, ranges: Ranges, state: Any, action: str) -> Ranges:
        """As `Responder.taken_for`: nothing is taken for anything else once hands are solved again."""
        if not _public(ranges):
            return super().taken_for(ranges, state, action)
        return {self._after(here, action): weight for here, weight in _places(ranges)}

    def answers(self, state: Any, ranges: Ranges, dealt: ResponderDeal) -> dict[str, Ranges]:
        """As `Responder.answers`."""
        if not _public(ranges):
            return super().answers(state, ranges, dealt)
        found: dict[str, Ranges] = {}
        for here, weight in _places(ranges):
            for action, played in zip(here.actions, here.played(), strict=True):
                share = weight * played
                if share.any():
                    found[action] = {self._after(here, action): share}
        return found

    def _folding(
        self,
        state: Any,
        action: str,
        ranges: Ranges,
        dealt: ResponderDeal,
        known: dict[tuple[Place, int], tuple[float, float]],
    ) -> tuple[float, float]:
        if not _public(ranges):
            return super()._folding(state, action, ranges, dealt, known)
        folded = won = 0.0
        for here, weight in _places(ranges):
            answering = self._after(here, action)
            share = weight * answering.played()[answering.actions.index("f")]
            folded, won = folded + float(share.sum()), won + float(share @ dealt.equity)
        return folded, won


def _public(ranges: Any) -> bool:
    """Whether places are public states already."""
    return isinstance(next(iter(ranges)), PublicState)


def _places(ranges: Any) -> list[tuple[PublicState, Floats]]:
    return list(ranges.items())
