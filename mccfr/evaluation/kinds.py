"""The evaluation methods that come with the program; what each computes is in a file of its own."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mccfr.evaluation.method import Count, EvaluationLine, Method, Record
from mccfr.evaluation.telling import tell_step
from mccfr.evaluation.units import Effort

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.evaluation.abstract import AbstractEvaluation
    from mccfr.evaluation.exact import Evaluation
    from mccfr.games.game import Game
    from mccfr.policy.profile import Profile
    from mccfr.tables.strategy import Strategy


def street_number(game: "Game", name: str | int) -> int:
    """A street by its name in hold'em, by its number elsewhere; `ValueError` naming those there are."""
    names = [str(game.street_name(street)) for street in range(game.tree.streets)]
    if str(name) not in names:
        raise ValueError(f"{game.name} has no street {str(name)!r}: it has {', '.join(names)}")
    return names.index(str(name))


def in_mbb(game: "Game", chips: float) -> float | None:
    """Thousandths of a big blind a game; None for games without one."""
    return None if game.big_blind_chips is None else 1000 * chips / game.big_blind_chips


def _size(record: Record) -> str:
    """Exploitability in a few figures, by the big blind where there is one."""
    mbb = record["exploitability_mbb"]
    return f"{record['exploitability_chips']:.4g} chips" if mbb is None else f"{mbb:.4g} mbb/g"


class ExactLine(EvaluationLine):
    """A line of the method exact."""

    exploitability_chips: float
    exploitability_mbb: float | None
    best_response_chips: tuple[float, float]


class _Whole(Method):
    """Value and exploitability over all deals."""

    takes: ClassVar[Mapping[str, Any]] = {}
    bound: ClassVar[str] = "exact"
    line: ClassVar[type[EvaluationLine]] = ExactLine

    def listing_bytes(self, game: "Game") -> int:
        """As `Method.listing_bytes`."""
        return game.cards.listing_bytes

    def find(self, side: "Profile", against: "Profile | None", *none: Any, **options: Any) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.tables.strategy import Strategy

        assert isinstance(side.strategy, Strategy)
        found = self._evaluated(side, side.strategy)
        return {
            "value_chips": found.value_chips,
            "exploitability_chips": found.exploitability_chips,
            "exploitability_mbb": in_mbb(side.game, found.exploitability_chips),
            "best_response_chips": [float(chips) for chips in found.best_response_chips],
        }

    @abstractmethod
    def _evaluated(self, side: "Profile", strategy: "Strategy") -> "Evaluation | AbstractEvaluation":
        """What the strategy is worth."""


class Exact(_Whole):
    """Value and exploitability, over all deals."""

    name: ClassVar[str] = "exact"

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        if game.cards.dealt and not game.cards.can_list:
            return f"{game.name} is too large for exact exploitability: use the method head-to-head"
        return None

    def prepared(self, game: "Game") -> Any:
        """The public tree."""
        from mccfr.evaluation.exact import prepared_tree

        return prepared_tree(game)

    def _evaluated(self, side: "Profile", strategy: "Strategy") -> "Evaluation":
        from mccfr.evaluation.exact import evaluate_exact

        return evaluate_exact(side.game, strategy, side.prepared)

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
        return f"exploitability {size}, value for player 0 {record['value_chips']:.6g} chips (exact, {took})"

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability {_size(record)}"


class Abstract(_Whole):
    """Value and exploitability within the abstracted game: the responder knows his cards by their buckets alone."""

    name: ClassVar[str] = "abstract"

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        from mccfr.evaluation.abstract import abstract_problem

        return abstract_problem(game)

    def _evaluated(self, side: "Profile", strategy: "Strategy") -> "AbstractEvaluation":
        from mccfr.evaluation.abstract import evaluate_abstract

        return evaluate_abstract(side.game, strategy)

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        mbb = record["exploitability_mbb"]
        size = f"{record['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
        return f"exploitability by buckets, within the abstracted game, {size} (exact there, {took})"

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability by buckets {record['exploitability_chips']:.4g} chips"


class _OverDeals(Method):
    """A method that deals cards beside the tree, as not every game does."""

    def problem(self, game: "Game") -> str | None:
        """As `Method.problem`."""
        return None if game.cards.dealt else f"{game.name} deals no cards beside its tree: use the method exact"


class HeadToHeadLine(EvaluationLine):
    """A line of the method head-to-head."""

    ci95_chips: tuple[float, float] | None
    against: str
    boards: Count
    exploitability_chips: None
    exploitability_mbb: None
    gain_chips: float | None = None
    gain_ci95_chips: tuple[float, float] | None = None
    gain_from_nodes: Count | None = None


class HeadToHead(_OverDeals):
    """Chips a hand won from another strategy, as the mean over both seats, on sampled boards."""

    name: ClassVar[str] = "head-to-head"
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True
    pairs: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = HeadToHeadLine
    takes: ClassVar[Mapping[str, Any]] = {"boards": 1000, "seed": 0, "effort": Effort()}

    def find(
        self,
        side: "Profile",
        against: "Profile | None",
        *none: Any,
        boards: int,
        seed: int,
        effort: Effort,
    ) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.head_to_head import head_to_head
        from mccfr.evaluation.on_deals import head_to_head_on_deals, is_on_deals

        assert against is not None
        meet = head_to_head_on_deals if is_on_deals(side, against) else head_to_head
        found = meet(side, against, boards, seed, partial(tell_step, "board"), effort)
        return {
            "value_chips": found.mean_chips,
            "ci95_chips": list(found.ci95_chips),
            "boards": found.boards,
            "units": found.boards,
            "seed": seed,
        }

    def gained(self, side: "Profile", units: Any, before: Any) -> dict[str, Any]:
        """As `Method.gained`: units are boards, (what the strategy wins, the board's weight)."""
        from mccfr.intervals import ratio95

        mean, interval = ratio95(units[:, 0] - before[:, 0], units[:, 1], side.game.cards.boards)
        return {"gain_chips": mean, "gain_ci95_chips": list(interval)}

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        low, high = record["ci95_chips"]
        text = (
            f"{record['value_chips']:+.4g} chips a hand against {record['against']} (95 %: {low:+.4g} to "
            f"{high:+.4g}; {record['boards']:,} boards, {took})"
        )
        if record.get("gain_chips") is None:
            return text
        low, high = record["gain_ci95_chips"]
        return (
            f"{text}; {record['gain_chips']:+.4g} since {record['gain_from_nodes']:,} nodes, on the same boards "
            f"(95 %: {low:+.4g} to {high:+.4g})"
        )

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"{record['value_chips']:+.4g} chips against {record['against']}"


class LowerBoundLine(EvaluationLine):
    """A line of a method whose figure is a lower bound on exploitability, in expectation."""

    ci95_chips: tuple[float, float]
    exploitability_chips: float
    exploitability_mbb: float | None
    ci95_mbb: tuple[float, float] | None
    best_response_chips: tuple[float, float]
    units: Count


def _lower_bound(game: "Game", chips: float, interval: tuple[float, float]) -> dict[str, Any]:
    """The fields of a record that say how much is won."""
    return {
        "value_chips": chips,
        "ci95_chips": list(interval),
        "exploitability_chips": chips,
        "exploitability_mbb": in_mbb(game, chips),
        "ci95_mbb": None if game.big_blind_chips is None else [in_mbb(game, end) for end in interval],
    }


def lower_bound_told(record: Record, took: str, what: str) -> str:
    """A record of such a method as one line for people; `what` names what wins so much."""
    (low, high), unit = (record["ci95_mbb"], "mbb/g") if record["ci95_mbb"] else (record["ci95_chips"], "chips")
    value = record["exploitability_mbb"] if record["ci95_mbb"] else record["exploitability_chips"]
    error = f" (95 %: {low:.5g} to {high:.5g}; " if low < high else " ("
    if value < 0:
        return f"no bound on exploitability: {what} wins {value:.5g} {unit}{error}{took})"
    return f"exploitability at least {value:.5g} {unit}: what {what} wins{error}{took})"


def _gained(gain: tuple[float, tuple[float, float]] | None, resolve: str | None) -> dict[str, Any]:
    """The fields of a record that say what solving again gains; none where nothing is."""
    if gain is None:
        return {}
    return {"gain_chips": gain[0], "gain_ci95_chips": list(gain[1]), "resolve": resolve}


def _gain_told(record: Record) -> str:
    """These, behind a line for people."""
    if record.get("resolve") is None:
        return ""
    low, high = record["gain_ci95_chips"]
    gain = f"{record['gain_chips']:+.4g} chips a hand (95 %: {low:+.4g} to {high:+.4g})"
    return f"; solving again from the {record['resolve']} on gains {gain}"


def _street_from(game: "Game", name: str | None) -> int:
    """The street from which a responder knows his cards: the last one, unless it is named."""
    return game.tree.streets - 1 if name is None else street_number(game, name)


class SampledBestResponse(_OverDeals):
    """What a player who knows his real cards wins from some street on, on sampled boards."""

    name: ClassVar[str] = "sampled-br"
    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = LowerBoundLine
    takes: ClassVar[Mapping[str, Any]] = {
        "from_street": None,
        "boards": None,
        "seed": 0,
        "resolve": None,
        "effort": Effort(),
    }

    def least_boards(self, game: "Game", from_street: str | None) -> int:
        """As `Method.least_boards`."""
        from mccfr.evaluation.sampled_best_response import least_boards

        return least_boards(game, _street_from(game, from_street))

    def find(
        self,
        side: "Profile",
        against: "Profile | None",
        *none: Any,
        from_street: str | None,
        boards: int | None,
        seed: int,
        resolve: str | None,
        effort: Effort,
    ) -> dict[str, Any]:
        """As `Method.find`; `from_street` None: the last one; `resolve` as `settings_of` of re-solving has it."""
        from mccfr.evaluation.sampled_best_response import sampled_best_response
        from mccfr.play.resolving.table import settings_of

        game, settings = side.game, None if resolve is None else settings_of(resolve)
        street = _street_from(game, from_street)
        found = sampled_best_response(side, street, boards, seed, effort, partial(tell_step, "board"), settings)
        return {
            **_lower_bound(game, found.value_chips, found.ci95_chips),
            "best_response_chips": list(found.best_response_chips),
            "from": game.street_name(street),
            "boards": found.boards,
            "units": found.boards,
            "seed": seed,
            **_gained(found.gain_chips, resolve),
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        what = f"a best response from street {record['from']} on"
        return lower_bound_told(record, f"{record['boards']:,} boards, {took}", what) + _gain_told(record)

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability at least {_size(record)} (sampled-br from {record['from']})"


class LocalBestResponseLine(LowerBoundLine):
    """A line of the method lbr."""

    setting: str
    hands: Count | None


class LocalBestResponse(_OverDeals):
    """Chips a hand that local best response wins, a lower bound of exploitability in expectation."""

    name: ClassVar[str] = "lbr"
    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = LocalBestResponseLine
    takes: ClassVar[Mapping[str, Any]] = {
        "setting": "2",
        "hands": None,
        "seed": 0,
        "resolve": None,
        "effort": Effort(),
    }

    def find(
        self,
        side: "Profile",
        against: "Profile | None",
        *none: Any,
        setting: str,
        hands: int | None,
        seed: int,
        resolve: str | None,
        effort: Effort,
    ) -> dict[str, Any]:
        """As `Method.find`; `resolve` as `mccfr.play.resolving.table.settings_of` has it."""
        from mccfr.evaluation.local_best_response import local_best_response
        from mccfr.play.resolving.table import settings_of

        game, settings = side.game, None if resolve is None else settings_of(resolve)
        note = partial(tell_step, "hand" if settings is None else "board")
        found = local_best_response(side, setting, hands, seed, note, effort, resolve=settings)
        first, second = found.seat_chips
        return {
            **_lower_bound(game, found.mean_chips, found.ci95_chips),
            "best_response_chips": [first + game.offset_chips, second - game.offset_chips],
            "setting": setting,
            "hands": found.hands,
            "units": found.units,
            "seed": seed,
            **_gained(found.gain_chips, resolve),
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        again = record.get("resolve")
        each = "deals from both seats" if again is None else "boards, from both seats with several hands each"
        deals = "every deal" if record["hands"] is None else f"{record['hands']:,} {each}"
        said = lower_bound_told(record, f"{deals}, {took}", f"local best response in setting {record['setting']}")
        return said + _gain_told(record)

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability at least {_size(record)} (lbr in setting {record['setting']})"


class TrainedBestResponseLine(LowerBoundLine):
    """A line of the method trained-br."""

    boards: Count
    responder: str
    responder_nodes: Count


class TrainedBestResponse(_OverDeals):
    """Chips a hand won by an opponent who was trained against the strategy: a lower bound of exploitability."""

    name: ClassVar[str] = "trained-br"
    bound: ClassVar[str] = "lower"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = TrainedBestResponseLine
    takes: ClassVar[Mapping[str, Any]] = {
        "responder_abstraction": None,
        "responder_menu": None,
        "nodes": None,
        "sampler": "public-chance-sampling",
        "boards": None,
        "seed": 0,
        "effort": Effort(),
    }

    def find(
        self,
        side: "Profile",
        against: "Profile | None",
        *none: Any,
        responder_abstraction: Path | None,
        responder_menu: Path | None,
        nodes: int | None,
        sampler: str,
        boards: int | None,
        seed: int,
        effort: Effort,
    ) -> dict[str, Any]:
        """As `Method.find`."""
        from mccfr.evaluation.trained_best_response import trained_best_response

        game, place = side.game, None if responder_abstraction is None else Path(responder_abstraction)
        bets = None if responder_menu is None else Path(responder_menu)
        found = trained_best_response(side, place, bets, nodes, boards, seed, sampler, effort)
        return {
            **_lower_bound(game, found.value_chips, found.ci95_chips),
            "best_response_chips": list(found.best_response_chips),
            "boards": found.boards,
            "units": found.boards,
            "seed": seed,
            "responder": found.knows,
            "responder_nodes": found.nodes,
            "chosen_nodes": list(found.chosen_nodes),
            "chosen_ways": list(found.chosen_ways),
        }

    def told(self, record: Record, took: str) -> str:
        """As `Method.told`."""
        what = f"a responder with {record['responder']}, trained for {record['responder_nodes']:,} nodes,"
        return lower_bound_told(record, f"{record['boards']:,} boards, {took}", what)

    def short(self, record: Record) -> str:
        """As `Method.short`."""
        return f"exploitability at least {_size(record)} (trained-br)"


KINDS = (Exact(), HeadToHead(), SampledBestResponse(), LocalBestResponse(), TrainedBestResponse(), Abstract())
"""In the order in which `auto` tries them."""
