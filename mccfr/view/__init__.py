"""A strategy as a page in a browser: what every hand does on any board, what it is worth, and hands against it.

`spots` answers for what a strategy does, `worth` for values, `solving` solves spots again, `playing` is a table;
`shelf` holds the strategies that a page shows, `application` answers its requests, `server` serves it to this machine
alone, and `static` holds the page: plain JavaScript and CSS that fetch nothing from elsewhere.
"""

from mccfr.view.server import serve
from mccfr.view.shelf import Shelf, open_shelf, open_spots
from mccfr.view.spots import Spots

__all__ = ["Shelf", "Spots", "open_shelf", "open_spots", "serve"]
