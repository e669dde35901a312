"""The local web page that shows a strategy: actions, EVs and equities of every hand on any board.

The page can also re-solve spots and play hands against the strategy.

strategies   opens the strategies of training runs, and policies (exported strategies), for the page
spot_view    answers queries about a strategy
application  answers the page's HTTP requests
server       HTTP server that only programs on the same machine can reach
page         source of the page: Preact components, bundled by its build.js
static       the bundle that is served; it loads nothing from elsewhere
"""

from mccfr.view.server import serve
from mccfr.view.spot_view import Spots
from mccfr.view.strategies import StrategyList, open_spots, open_strategies

__all__ = ["Spots", "StrategyList", "open_spots", "open_strategies", "serve"]
