"""What an exported policy has lost: rounded probabilities, and actions that were taken out."""

from pathlib import Path

from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.games.game import Game
from mccfr.policy import Policy
from mccfr.policy.profile import Profile
from mccfr.runs.phases import naming_steps
from mccfr.runs.reporter import Reporter, Silent
from mccfr.tables.strategy import Strategy

BOARDS = 100


def export_cost(
    game: Game, strategy: Strategy, policy: Path, boards: int = BOARDS, reporter: Reporter | None = None
) -> str:
    """What a strategy wins from itself as it was exported, in words: head-to-head, on `boards` boards or all there are.

    A strategy may lose nothing to another and still be easier to exploit; where no cards are dealt beside the tree,
    exploitability before and after is told instead.
    """
    reporter, exported = reporter or Silent(), Policy.open(policy)
    reporter.phase("measuring what the export has cost")
    if not game.cards.dealt:
        before, after = (
            evaluate_exact(one, each).exploitability_chips
            for one, each in ((game, strategy), (exported.game, exported.strategy()))
        )
        return f"exploitability {after:.6g} chips as exported, {before:.6g} before"
    with naming_steps(reporter):
        found = head_to_head(Profile(game, strategy), Profile(game, exported.strategy()), boards)
    low, high = found.ci95_chips
    scale, unit = (1, "chips a hand") if not game.big_blind_chips else (1000 / game.big_blind_chips, "mbb/g")
    exact = "" if low < high else ", exactly"
    interval = f" (95 %: {low * scale:+.3g} to {high * scale:+.3g}, {found.boards:,} boards)" if low < high else ""
    return f"as exported it loses {found.mean_chips * scale:+.3g} {unit} to the average as it is{exact}{interval}"
