"""A strategy as a page in a browser: walk along the betting, choose boards, see what every hand does.

`spots` answers what the page asks, `server` hands both out on this machine alone, and `static` holds the page: plain
JavaScript and CSS that fetch nothing from elsewhere.
"""

from mccfr.view.server import serve
from mccfr.view.spots import Spots, open_spots

__all__ = ["Spots", "open_spots", "serve"]
