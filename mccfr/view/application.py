"""Answers the page's HTTP requests with files and JSON, as a WSGI application (PEP 3333).

Security: requests are answered only if `Host` names this machine, against DNS rebinding.  Requests from other sites'
pages are refused by `Sec-Fetch-Site` and `Origin` before anything is done.  Requests that change something are POST
with JSON. A form cannot send that, and a script only after a preflight request (OPTIONS), which is refused.  The
headers forbid the page to load anything from elsewhere.
"""

import json
import logging
import threading
import traceback
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import parse_qs

import msgspec

from mccfr.view.drills import drills
from mccfr.view.judgement import judge
from mccfr.view.position_charts import position_chart
from mccfr.view.resolve_request import BusyError
from mccfr.view.saved_ranges import delete_range, save_range
from mccfr.view.solved_spots import delete_spot, solved_spots
from mccfr.view.spot_requests import FIELDS
from mccfr.view.strategies import LoadedStrategy, StrategyList

ADDRESS = "127.0.0.1"
MOST_ALIKE = 8
"""Maximum number of requests for one path that are answered at the same time; one browser sends fewer."""
MOST_BODY = 65_536
"""Maximum bytes of a request's body."""
MOST_TEXT = 2_000
"""Maximum characters of a line or board."""
MOST_RANGE = 20_000
"""Maximum characters of a range or of locks."""
_MOST_SENTENCE = 500  # characters, because a refusal may repeat what was sent
_HTML, _CSS, _SCRIPT = (f"text/{kind}; charset=utf-8" for kind in ("html", "css", "javascript"))
_FILES = {"index.html": _HTML, "view.css": _CSS, "view.js": _SCRIPT}
"""Content types of the page's files."""
_LONG = ("oop", "ip", "range", "locks", "text")
_Text, _Range = (Annotated[str, msgspec.Meta(max_length=most)] for most in (MOST_TEXT, MOST_RANGE))
_Of = int | _Text
_Known = Mapping[str, Any]
_Asked = tuple[Callable[..., dict[str, Any]], _Known]
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Response = tuple[HTTPStatus, str, bytes]
"""Status, content type and body."""


class RefusedError(Exception):
    """A refused request, with HTTP status and a sentence on the reason."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Application:
    """WSGI application that answers the web page's HTTP requests; several threads may call it."""

    def __init__(self, strategies: StrategyList, port: int) -> None:
        """Answer requests about the given strategies, if sent to 127.0.0.1 or localhost at `port`."""
        self.shelf = strategies
        self.names = f"{ADDRESS}:{port}", f"localhost:{port}"
        self._places = {path: threading.Semaphore(MOST_ALIKE) for path in (*_GET, *_POST)}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """Answer a request as PEP 3333 defines; an unexpected error gives status 500 and a line in the log."""
        try:
            response = self._respond(environ)
        except Exception as error:  # the server must survive any error
            _log(f"{environ['REQUEST_METHOD']} {environ['REQUEST_URI'][:80]!a}", error)
            sentence = (
                f"this should not have happened ({type(error).__name__}): the terminal says more; please report it"
            )
            response = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        start_response(*head(response))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [response[2]]

    def _respond(self, environ: dict[str, Any]) -> Response:
        """Return (status, content type, body) of the response: a page file, a JSON answer, or an error."""
        try:
            self._check_sender(environ)
            name = environ["PATH_INFO"].removeprefix("/") or "index.html"
            if environ["REQUEST_METHOD"] == "GET" and name in _FILES:
                return HTTPStatus.OK, _FILES[name], files("mccfr.view").joinpath("static", name).read_bytes()
            found = self._answer(environ)
        except RefusedError as error:
            return refusal(error.status, str(error))
        except BusyError as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except ValueError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:  # a damaged file
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return _json(HTTPStatus.OK, found)

    def _check_sender(self, environ: dict[str, Any]) -> None:
        """Raise `RefusedError` unless a request is GET or POST, to this server, from its own page.

        Requests from pages of other sites may only get the page's HTML, CSS and script files.
        """
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method not in ("GET", "POST"):
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are known")
        if environ.get("HTTP_HOST") not in self.names:
            sentence = f"this server answers to {' and '.join(self.names)} only"
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, sentence)
        if not environ["REQUEST_URI"].startswith("/"):
            sentence = f"ask for a path such as /api/game, not {environ['REQUEST_URI'][:80]!a}"
            raise RefusedError(HTTPStatus.BAD_REQUEST, sentence)
        works = method != "GET" or path.removeprefix("/") not in ("", *_FILES)
        near = environ.get("HTTP_SEC_FETCH_SITE", "none") in ("none", "same-origin")
        own = environ.get("HTTP_ORIGIN") in (None, *(f"http://{name}" for name in self.names))
        if works and not (near and own):
            raise RefusedError(HTTPStatus.FORBIDDEN, "this server answers its own page only: open it by its address")

    def _answer(self, environ: dict[str, Any]) -> dict[str, Any]:
        """Call the function of the request's path with the request's parameters; return its answer.

        Raises `RefusedError` for an unknown path or a body whose content type is not JSON. Raises `ValueError` for
        invalid parameters, `BusyError` while too many requests use the path, and all errors of the path's function.
        """
        path, posted = environ["PATH_INFO"], environ["REQUEST_METHOD"] == "POST"
        if posted and environ.get("CONTENT_TYPE") != "application/json":
            sentence = f"send application/json of at most {MOST_BODY:,} bytes, from this server's own page"
            raise RefusedError(HTTPStatus.BAD_REQUEST, sentence)
        if path not in (routes := _POST if posted else _GET):
            raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no {path[:80]!a} here")
        does, known = routes[path]
        known = {"of": _Of, **known}
        given = _fields(environ["wsgi.input"].read(), known) if posted else _arguments(environ["QUERY_STRING"], known)
        of = _strategy(given.pop("of", 0))
        if not self._places[path].acquire(blocking=False):
            raise BusyError(f"{MOST_ALIKE} requests for {path} are being answered: try again when one is done")
        try:
            if path.startswith(("/api/spots", "/api/review")):
                return does(self.shelf, of, **given)
            return does(self.shelf.shown(of), **given) | (self.shelf.about(of) if does is _game else {})
        finally:
            self._places[path].release()


def _json(status: HTTPStatus, value: dict[str, Any]) -> Response:
    return status, "application/json", json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def refusal(status: HTTPStatus, sentence: str) -> Response:
    """Return (status, content type, body) with the JSON {"error": sentence}, shortened and in one line."""
    return _json(status, {"error": " ".join(sentence.split())[:_MOST_SENTENCE]})


def head(response: Response) -> tuple[str, list[tuple[str, str]]]:
    """Return the status text, such as "200 OK", and the headers [(name, value)] of a response."""
    status, kind, body = response
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = "GET, POST"
    return f"{status.value} {status.phrase}", list(headers.items())


def _log(error_text: str, error: Exception) -> None:
    """Log an unexpected error in one line, with the file and line of code that raised it.

    error_text  method and path of the request that failed
    """
    step = traceback.extract_tb(error.__traceback__)[-1]
    place, text = f"{step.filename.rpartition('/')[2]}:{step.lineno}", ascii(str(error)[:200])[1:-1]
    logging.getLogger("mccfr.view").error(
        "mccfr: %s failed at %s: %s: %s", error_text, place, type(error).__name__, text
    )


def _arguments(query: str, known: _Known) -> dict[str, Any]:
    """Parse the parameters of a query string and convert them to the types in `known`.

    known  {name: type} of the parameters that the request's path accepts

    Raises `ValueError` for parameters that are unknown, repeated, of another type or too long.
    """
    try:
        found = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=8, errors="strict")
    except ValueError:
        raise ValueError("the query is not understood: write line=b300c/&board=Kc7d2s") from None
    if repeated := [name for name, values in found.items() if len(values) > 1]:
        raise ValueError(f"{repeated[0][:40]!r} is given twice")
    return _checked({name: values[0] for name, values in found.items()}, known, strict=False)


def _fields(body: bytes, known: _Known) -> dict[str, Any]:
    """Parse the parameters of a JSON body and convert them to the types in `known`.

    known  {name: type} of the parameters that the request's path accepts

    Raises `ValueError` for parameters that are unknown, of another type or too long.
    """
    try:
        return _checked(json.loads(body), known)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("the request is not JSON") from None


def _checked(given: Any, known: _Known, *, strict: bool = True) -> dict[str, Any]:
    """Return parameters converted to the types in `known`.

    given   {name: value} of the request
    known   {name: type} of the parameters that the request's path accepts
    strict  False: convert texts to numbers, as a query string needs

    Raises `ValueError`, naming the parameter, if it is unknown, of another type or too long.
    """
    if not isinstance(given, dict):
        raise ValueError("the request is no JSON object")
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{name[:40]!r} is no parameter here; known are {', '.join(known)}")
        kind = known[name] if known[name] is not str else _Range if name in _LONG else _Text
        try:
            given[name] = msgspec.convert(value, kind, strict=strict)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name} = {str(value)[:40]!r}: {str(error).replace('`', '')}") from None
    return given


def _strategy(of: int | str) -> int | str:
    """Return the parameter `of`, which names the strategy of a request: 3 for "3", other text unchanged.

    A number is the index of a strategy that the server was started with. Other text is the name of a spot (a board
    with two ranges) that the page has solved. The result may be an unknown number or name.
    """
    return int(of) if isinstance(of, str) and of.isdecimal() else of


def _game(shown: LoadedStrategy) -> dict[str, Any]:
    return shown.spots.game()


_AT: _Known = {"line": str, "board": str}
_GET: Mapping[str, _Asked] = {
    "/api/game": (_game, {}),
    "/api/spot": (lambda shown, **at: shown.spots.spot(**at), _AT),
    "/api/ranges": (lambda shown, **at: {"ranges": shown.spots.ranges(**at)}, {**_AT, "notation": str}),
    "/api/equity": (lambda shown, **at: shown.spots.equity(**at), _AT),
    "/api/values": (lambda shown, **at: shown.values.values(**at), _AT),
    "/api/cost": (
        lambda shown, **asked: judge(shown.spots, shown.values, **asked),
        {**_AT, "hand": str, "action": str},
    ),
    "/api/chart": (lambda shown, **at: position_chart(shown.spots, **at), {"line": str}),
    "/api/solve": (lambda shown: shown.solving.state(), {}),
    "/api/play": (lambda shown: shown.playing.state(), {}),
    "/api/play/drills": (lambda shown: {"drills": drills(shown.spots)}, {}),
    "/api/review": (lambda shelf, _, **which: shelf.reviewed(**which), {"street": str, "player": str}),
    "/api/spots": (lambda shelf, _: shelf.desk.state(), {}),
    "/api/spots/solved": (lambda shelf, _: {"spots": solved_spots()}, {}),
    "/api/spots/ranges": (lambda shelf, of: shelf.presets(of), {}),
}
_POST: Mapping[str, _Asked] = {
    "/api/solve": (
        lambda shown, **job: shown.solving.start(**{"line": "", "board": "", **job}),
        {**_AT, "iterations": int},
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
    "/api/spots/delete": (lambda shelf, _, run="": delete_spot(run), {"run": str}),
    "/api/spots/ranges/save": (
        lambda shelf, _, **given: save_range(**given),
        {"name": str, "text": str},
    ),
    "/api/spots/ranges/delete": (lambda shelf, _, name="": delete_range(name), {"name": str}),
    "/api/play/sit": (
        lambda shown, **given: shown.playing.sit(**given),
        {"resolve": str, "seed": int, "line": str, "hand": int},
    ),
    "/api/play/deal": (lambda shown, hand=-1: shown.playing.deal(hand), {"hand": int}),
    "/api/play/again": (lambda shown, hand=-1: shown.playing.again(hand), {"hand": int}),
    "/api/play/act": (
        lambda shown, hand=-1, line="", action="": shown.playing.act(hand, line, action),
        {"hand": int, "line": str, "action": str},
    ),
}
"""For each path, its function and its parameters besides `of`, the strategy's number or name."""
