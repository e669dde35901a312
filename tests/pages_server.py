"""Runs the page's server in a thread and sends requests to it."""

import json
import threading
from contextlib import contextmanager
from http.client import HTTPConnection

from mccfr.view import StrategyList
from mccfr.view.server import ViewServer


def serving(*spots, review=None):
    return serve_strategies(StrategyList([(one.title, lambda one=one: one) for one in spots], review))


@contextmanager
def serve_strategies(shelf):
    with ViewServer(shelf, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.accepting = False
            server.pull_trigger()
            thread.join()
            shelf.desk.close()


def ask(server, path, method="GET", host=None, body=None, **headers):
    """Send a request and return (status, headers, body); a body is sent as JSON."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name in host if isinstance(host, list) else [host or f"127.0.0.1:{server.server_port}"]:
        connection.putheader("Host", name)
    text = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if text is not None:
        headers = {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(text)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found
