"""The page's server in a thread, and what it answers."""

import json
import threading
from contextlib import contextmanager
from http.client import HTTPConnection

from mccfr.view import StrategyList
from mccfr.view.server import ViewServer


def serving(*spots, review=None):
    return served_shelf(StrategyList([(one.title, lambda one=one: one) for one in spots], review))


@contextmanager
def served_shelf(shelf):
    with ViewServer(shelf, 0) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield served
        finally:
            served.accepting = False
            served.pull_trigger()
            thread.join()
            shelf.desk.close()


def ask(served, path, method="GET", host=None, body=None, **headers):
    """(status, headers, body) of a request; a body is sent as JSON."""
    connection = HTTPConnection("127.0.0.1", served.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name in host if isinstance(host, list) else [host or f"127.0.0.1:{served.server_port}"]:
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
