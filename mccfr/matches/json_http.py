"""HTTP client for JSON servers, with a new connection for each request."""

import http.client
import json
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from mccfr.common.package import VERSION
from mccfr.matches.acpc import TableError, quoted

MOST_BYTES = 1 << 20
Post = Callable[[str, Mapping[str, Any] | None], Any]
"""Posts a JSON object to a path below the server's URL (None: a GET request) and returns the response's JSON."""


class NoAnswerError(TableError):
    """Raised if a request has no response, or none that can be used."""


class StatusError(NoAnswerError):
    """Raised for a response with an HTTP error status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class DisconnectedError(NoAnswerError):
    """Raised if there is no connection or it was lost; the server may have received the request."""


def http_post(url: str, seconds: float, secret: Mapping[str, str] | None = None) -> Post:
    """Return a function that sends requests to a server and returns the JSON of the responses.

    url      such as "https://slumbot.com/api"
    seconds  time limit of a response
    secret   confidential HTTP headers, such as a key, which are sent only encrypted (TLS) or to this machine

    The function takes a path below `url`, and a mapping to send as JSON; with None it sends a GET request. It returns
    None for a body that is not JSON.

    Raises `ValueError` for an invalid URL, and for `secret` with an unencrypted URL of another machine. Requests raise
    `DisconnectedError`, `StatusError`, and `NoAnswerError` on timeout.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"url = {quoted(url)}: an address such as https://HOST/api is needed")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"url = {quoted(url)}: its port is no number from 0 to 65535") from None
    if secret and parts.scheme == "http" and not _is_loopback(host):
        raise ValueError(f"url = {quoted(url)}: the key would be sent unencrypted: give an https address")
    base = parts.path.rstrip("/")
    headers = {"Content-Type": "application/json", "Connection": "close", "User-Agent": f"mccfr/{VERSION}"}

    def post(path: str, body: Mapping[str, Any] | None) -> Any:
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(host, port, timeout=seconds)
        method, sent = ("GET", None) if body is None else ("POST", json.dumps(body))
        try:
            connection.request(method, f"{base}/{path}", sent, headers | dict(secret or {}))
            response = connection.getresponse()
            status, data = response.status, response.read(MOST_BYTES + 1)
        except TimeoutError:
            raise NoAnswerError(f"{url} has not answered /{path} within {seconds:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise DisconnectedError(
                f"{url} cannot be reached for /{path}: {reason if reason.isprintable() else repr(reason)}"
            ) from None
        finally:
            connection.close()
        return read_body(f"{url}/{path}", status, data)

    return post


def _is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine's loopback interface."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_body(address: str, status: int, data: bytes) -> Any:
    """Parse the JSON of a response's body; None if it is invalid or longer than 1 MiB.

    address  URL of the request, for messages
    status   HTTP status of the response
    data     the body

    Raises `StatusError` for a status other than 200 and 201.
    """
    try:
        content = json.loads(data) if len(data) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        content = None
    if status not in (http.client.OK, http.client.CREATED):
        reason = (content.get("error_msg") or content.get("detail")) if isinstance(content, dict) else None
        text = f"{address} answers with HTTP status {status}" + (f": {quoted(str(reason))}" if reason else "")
        raise StatusError(text, status)
    return content
