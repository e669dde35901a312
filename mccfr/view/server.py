"""Hands the page and its answers out over HTTP, to this machine alone.

Python's own server does: two dozen answers in JSON and ten files, asked for by one browser.  A library such as bottle
would route them with as many lines, and serve them by the same `http.server` underneath unless another one comes with
it; what matters here - whom it answers, with which headers - would be ours to write all the same.

It listens at 127.0.0.1 and answers only requests that name it so: a page of somebody else's whose name has been made to
lead here (DNS rebinding) is refused by its `Host`.  What such a page asks for under this server's own name is refused
by what browsers say of it (`Sec-Fetch-Site`, `Origin`), before anything is done.  What changes something is sent by
POST as JSON, which a form there cannot do, and a script only after a question that is refused (there is no OPTIONS).
The headers forbid the page to load anything from elsewhere.  `connections` bounds all that comes.
"""

import errno
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from mccfr.view.connections import LIMITS, BoundedHandler, BoundedServer, Limits, RefusedError
from mccfr.view.desk import FIELDS
from mccfr.view.drills import drills
from mccfr.view.shelf import Shelf, Shown
from mccfr.view.solving import BusyError

ADDRESS = "127.0.0.1"
PORT = 8765
MOST_TEXT = 2_000
"""Characters of a line or board."""
MOST_RANGE = 20_000
"""Characters of a range or of locks."""
MOST_BODY = 65_536
"""Bytes of what a page sends."""
_MOST_SENTENCE = 500  # characters: what is wrong may be told with all that was sent
_HTML, _CSS, _SCRIPT = (f"text/{kind}; charset=utf-8" for kind in ("html", "css", "javascript"))
_FILES = {
    "index.html": ("mccfr.view", _HTML),
    "strategy.css": ("mccfr.report", _CSS),
    "view.css": ("mccfr.view", _CSS),
    "strategy.js": ("mccfr.report", _SCRIPT),
    "view.js": ("mccfr.view", _SCRIPT),
    "train.js": ("mccfr.view", _SCRIPT),
    "play.js": ("mccfr.view", _SCRIPT),
    "typed.js": ("mccfr.view", _SCRIPT),
    "review.js": ("mccfr.view", _SCRIPT),
    "runouts.js": ("mccfr.view", _SCRIPT),
}
"""Of each file, the package whose `static` holds it, and its type."""
_Known = Mapping[str, type]
_Asked = tuple[Callable[..., dict[str, Any]], _Known]
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ViewServer(BoundedServer):
    """A server of strategies; what `shelf` holds answers."""

    def __init__(self, shelf: Shelf, port: int = PORT, limits: Limits = LIMITS) -> None:
        """Listen at 127.0.0.1; port 0 takes a free one.  Raises `ValueError` where the port cannot be had."""
        self.shelf = shelf
        try:
            super().__init__((ADDRESS, port), _Handler, limits)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                hint = "give another --port, or 0 for a free one"
                raise ValueError(f"port {port} of {ADDRESS} is in use: {hint}") from None
            raise ValueError(f"cannot listen at {ADDRESS}:{port}: {error.strerror or error}") from None
        self.names = f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"
        self.url = f"http://{self.names[0]}/"


class _Handler(BoundedHandler):
    """Answers one connection."""

    server: ViewServer

    def do_GET(self) -> None:  # noqa: N802  (the base class's name)
        """Answer a request."""
        path, query = self._asked()
        self.no_body()
        name = path.removeprefix("/") or "index.html"
        if name in _FILES:
            package, kind = _FILES[name]
            body = files(package).joinpath("static", name).read_bytes()
            self.send(HTTPStatus.OK, {"Content-Type": kind, **_HEADERS}, body)
            return
        self._ask(_GET.get(path), lambda known: _arguments(query, known))

    def do_POST(self) -> None:  # noqa: N802  (the base class's name)
        """Do what a request asks for, of what a page may change: a hand that is played, a spot that is solved."""
        path, _ = self._asked()
        if self.headers.get("Content-Type") != "application/json":
            message = f"send application/json of at most {MOST_BODY:,} bytes, from this server's own page"
            raise RefusedError(HTTPStatus.BAD_REQUEST, message)
        body = self.body(MOST_BODY)
        self._ask(_POST.get(path), lambda known: _fields(body, known))

    def _asked(self) -> tuple[str, str]:
        """(path, query) of a request that names this server and comes from its own page; else `RefusedError`.

        A page of somebody else's may lead to this one (a link), and to nothing that is worked out.
        """
        names = self.server.names
        if self.headers.get_all("Host", []) not in [[name] for name in names]:
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, f"this server answers to {' and '.join(names)} only")
        path, _, query = self.path.partition("?")
        if not path.startswith("/"):
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"ask for a path such as /api/game, not {path[:80]!a}")
        works = self.command != "GET" or path.removeprefix("/") not in ("", *_FILES)
        near = {"none", "same-origin"}.issuperset(self.headers.get_all("Sec-Fetch-Site", []))
        own = {f"http://{name}" for name in names}.issuperset(self.headers.get_all("Origin", []))
        if works and not (near and own):
            sentence = "this server answers its own page only: open it by its address"
            raise RefusedError(HTTPStatus.FORBIDDEN, sentence)
        return path, query

    def _ask(self, asked: "_Asked | None", read: Callable[[_Known], dict[str, Any]]) -> None:
        """Answer what is asked with what `read` makes of the request."""
        if asked is None:
            self.say(HTTPStatus.NOT_FOUND, f"there is no {self.path.partition('?')[0][:80]!a} here")
            return
        does, known = asked
        try:
            given = read({"of": int, **known})
            shelf, of = self.server.shelf, given.pop("of", 0)
            if self.path.partition("?")[0].startswith(("/api/spots", "/api/review")):
                found = does(shelf, of, **given)
            else:
                found = does(shelf.shown(of), **given) | (shelf.about(of) if does is _game else {})
        except BusyError as error:
            self.say(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except ValueError as error:
            self.say(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:  # a damaged file
            self.say(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        else:
            self._send(HTTPStatus.OK, found)

    def say(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        """Answer with a sentence, short and in one line."""
        self._send(status, {"error": " ".join(sentence.split())[:_MOST_SENTENCE]}, **headers)

    def _send(self, status: HTTPStatus, value: dict[str, Any], **headers: str) -> None:
        body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
        self.send(status, {"Content-Type": "application/json", **_HEADERS, **headers}, body)


def _arguments(query: str, known: _Known) -> dict[str, Any]:
    """Parameters of a request; `ValueError` for others than the known ones, twice the same, and long ones."""
    try:
        found = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=8, errors="strict")
    except ValueError:
        raise ValueError("the query is not understood: write line=r300c/&board=Kc7d2s") from None
    for name, values in found.items():
        if name not in known or len(values) > 1:
            raise ValueError(f"{name[:40]!r} is no parameter here, or is given twice; known are {', '.join(known)}")
        if known[name] is int and not (values[0].isdecimal() and len(values[0]) < 10):
            raise ValueError(f"{name} = {values[0][:40]!r} is not a whole number")
    return _checked({name: known[name](values[0]) for name, values in found.items()})


def _fields(body: bytes, known: _Known) -> dict[str, Any]:
    """The same of a request's JSON object."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the request is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("the request is no JSON object")
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{name[:40]!r} is no parameter here; known are {', '.join(known)}")
        if type(value) is not known[name]:
            wanted = "a whole number" if known[name] is int else "text"
            raise ValueError(f"{name} = {str(value)[:40]!r} is not {wanted}")
    return _checked(found)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters none of which is too long."""
    for name, value in given.items():
        most = MOST_RANGE if name in _LONG else MOST_TEXT
        if isinstance(value, str) and len(value) > most:
            raise ValueError(f"{name} has {len(value):,} characters; at most {most:,} are read")
    return given


def _game(shown: Shown) -> dict[str, Any]:
    return shown.spots.game()


_LONG = ("oop", "ip", "range", "locks")
_AT: _Known = {"line": str, "board": str}
_GET: Mapping[str, _Asked] = {
    "/api/game": (_game, {}),
    "/api/spot": (lambda shown, **at: shown.spots.spot(**{"line": "", **at}), _AT),
    "/api/equity": (lambda shown, **at: shown.spots.equity(**{"line": "", **at}), _AT),
    "/api/values": (lambda shown, **at: shown.values.values(**{"line": "", **at}), {**_AT, "boards": int}),
    "/api/cost": (
        lambda shown, **at: shown.values.cost(**{"line": "", "board": "", "hand": "", "action": "", **at}),
        {**_AT, "hand": str, "action": str, "boards": int},
    ),
    "/api/solve": (lambda shown: shown.solving.state(), {}),
    "/api/play": (lambda shown: shown.playing.state(), {}),
    "/api/play/drills": (lambda shown: {"drills": drills(shown.spots)}, {}),
    "/api/review": (lambda shelf, _, **which: shelf.reviewed(**which), {"street": str, "player": str}),
    "/api/spots": (lambda shelf, _: shelf.desk.state(), {}),
}
_POST: Mapping[str, _Asked] = {
    "/api/solve": (
        lambda shown, **job: shown.solving.start(**{"line": "", "board": "", **job}),
        {**_AT, "method": str, "iterations": int},
    ),
    "/api/solve/stop": (lambda shown: shown.solving.stop(), {}),
    "/api/spots/range": (
        lambda shelf, _, **given: shelf.desk.range(**given),
        dict.fromkeys(("range", "board", "classes", "weight"), str),
    ),
    "/api/spots/solve": (
        lambda shelf, of, **given: shelf.solve_typed(of, **given),
        dict.fromkeys((*FIELDS, "line"), str),
    ),
    "/api/spots/stop": (lambda shelf, _: shelf.desk.stop(), {}),
    "/api/play/sit": (lambda shown, **given: shown.playing.sit(**given), {"resolve": str, "seed": int, "line": str}),
    "/api/play/deal": (lambda shown, hand=-1: shown.playing.deal(hand), {"hand": int}),
    "/api/play/again": (lambda shown, hand=-1: shown.playing.again(hand), {"hand": int}),
    "/api/play/act": (
        lambda shown, hand=-1, line="", action="": shown.playing.act(hand, line, action),
        {"hand": int, "line": str, "action": str},
    ),
}
"""What is asked of a strategy, and with which parameters beside `of`, its number."""


def serve(shelf: Shelf, port: int = PORT, *, ready: Callable[[str], None]) -> None:
    """Serve strategies until a signal, which is raised once the spots that are being solved have ended.

    port   0: a free one
    ready  is told the page's address once it answers

    Raises `ValueError` where the port cannot be had.
    """
    try:
        with ViewServer(shelf, port) as server:
            ready(server.url)
            server.serve_forever()
    finally:
        shelf.desk.close()
