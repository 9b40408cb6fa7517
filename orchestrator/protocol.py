"""A small HTTP/1.1 server for one question at a time: nothing waits for long, and nothing grows."""

import asyncio
import hmac
import json
from collections.abc import Callable
from typing import Any, NamedTuple

MOST_HEAD, MOST_BODY, MOST_HELD = 16 * 1024, 4 * 2**20, 32 * 2**20
"""Bytes of a request's head, of its body, and of all requests together that have not come whole."""

MOST_CONNECTIONS = 512
"""Connections at a time; a new one takes the place of the one that has been silent for longest."""

MOST_DRAINED = 32 * 2**20
"""Bytes that are still taken, and thrown away, of a client that was refused: it may read only when all is sent."""

PATIENCE, IDLE, LINGER = 10.0, 60.0, 5.0
"""Seconds in which a request must come whole, for which a connection may be silent between requests, and for which one
that was refused may go on sending."""

RECEIVED = 256 * 1024
"""Bytes that are received at once."""

SWEEP = 0.5
"""Seconds between looks at who is late."""

REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 411: "Length Required", 413: "Content Too Large", 422: "Unprocessable Content",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
    503: "Service Unavailable", 505: "HTTP Version Not Supported",
}  # fmt: skip


_ENCODER = json.JSONEncoder(allow_nan=False)


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, allow: str = "") -> None:
        super().__init__(message)
        self.status, self.allow = status, allow


class Request(NamedTuple):
    """The head of a request."""

    method: str
    path: str
    query: str
    length: int  # bytes of the body
    keep: bool  # the connection stays open
    waits: bool  # the client waits for leave to send the body


Handler = Callable[[Request, bytearray], dict[str, Any]]
"""Answers a request, or raises Refusal."""


class Counter:
    """What all connections share: the handler, the token, and how much they hold."""

    def __init__(self, handler: Handler, routes: dict[str, str], token: str = "") -> None:
        self.handler, self.routes, self.token = handler, routes, token.encode()
        self.held = 0
        self.incoming = memoryview(bytearray(RECEIVED))  # what has just come, of whatever connection
        self.connections: dict[Connection, None] = {}  # the one that has been silent for longest comes first

    def connection(self) -> "Connection":
        """A new connection."""
        return Connection(self)

    async def sweep(self) -> None:
        """Close the connections whose time is over, again and again: cheaper than a timer for every request."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP)
            for connection in list(self.connections):
                if connection.deadline < loop.time():
                    connection.late()

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self.connections):
            connection.end()


class Connection(asyncio.BufferedProtocol):
    """One client."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.buffer = bytearray()
        self.head: Request | None = None
        self.transport: asyncio.Transport | None = None
        self.deadline = 0.0  # by the loop's clock: until then it must have asked
        self.paused = False
        self.drained: int | None = None  # bytes thrown away since the client was refused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a client in; where there are too many, the one that has been silent for longest goes."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=256 * 1024)
        while len(self.counter.connections) >= MOST_CONNECTIONS:
            next(iter(self.counter.connections)).end()
        self.counter.connections[self] = None
        self._wait(PATIENCE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a client that has gone."""
        self._forget()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where bytes may be received: all connections share the place, since bytes are taken in at once."""
        return self.counter.incoming

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes in, and answer every request that has come whole."""
        if self.transport is None:
            return
        if self.drained is not None:
            self.drained += nbytes
            if self.drained > MOST_DRAINED:
                self.end()
            return
        if not self.buffer and self.head is None:
            self._wait(PATIENCE)  # a request begins
        self.buffer += self.counter.incoming[:nbytes]
        self.counter.held += nbytes
        self._serve()

    def eof_received(self) -> bool:
        """The client sends nothing more."""
        return False

    def pause_writing(self) -> None:
        """The client does not read its answers: ask it for nothing more."""
        self.paused = True
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """The client has read on."""
        self.paused = False
        if self.transport is not None:
            self.transport.resume_reading()
            self._serve()

    def end(self) -> None:
        """Close the connection without a word."""
        transport = self.transport
        self._forget()
        if transport is not None:
            transport.abort()

    def _serve(self) -> None:
        try:
            while self.transport is not None and self.drained is None and not self.paused and self._next():
                pass
            if self.counter.held > MOST_HELD and self.drained is None:
                raise Refusal(503, "too many requests have not come whole")
        except Refusal as refusal:
            self._answer(refusal.status, {"error": str(refusal)}, False, refusal.allow)

    def _next(self) -> bool:
        """Answer the next request; False where it has not come whole."""
        if self.head is None:
            end = self.buffer.find(b"\r\n\r\n", 0, MOST_HEAD)
            if end < 0:
                if len(self.buffer) >= MOST_HEAD:
                    raise Refusal(431, f"the head has more than {MOST_HEAD:,} bytes")
                return False
            head = read_head(bytes(self.buffer[:end]), self.counter)
            self._drop(end + 4)
            self.head = head
            if head.waits and self.transport is not None:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = self.head
        if len(self.buffer) < head.length:
            return False
        self.head = None
        status, told, allow = self._handled(head, self._body(head.length))  # by now the body's memory is given back
        self._answer(status, told, head.keep, allow)
        if self.transport is not None and self.drained is None:
            self.counter.connections.pop(self, None)
            self.counter.connections[self] = None
            self._wait(PATIENCE if self.buffer else IDLE)
        return True

    def _handled(self, head: Request, body: bytearray) -> tuple[int, dict[str, Any], str]:
        """Status, answer and allowed method for a request."""
        try:
            return 200, self.counter.handler(head, body), ""
        except Refusal as refusal:
            return refusal.status, {"error": str(refusal)}, refusal.allow

    def _body(self, length: int) -> bytearray:
        """Take a body out of what has come; without a copy, where nothing else has."""
        body = self.buffer
        if len(body) == length:
            self.buffer = bytearray()
            self.counter.held -= length
            return body
        body = body[:length]
        self._drop(length)
        return body

    def _drop(self, count: int) -> None:
        del self.buffer[:count]
        self.counter.held -= count

    def _answer(self, status: int, told: dict[str, Any], keep: bool, allow: str = "") -> None:
        transport = self.transport
        if transport is None:
            return
        body = _ENCODER.encode(told).encode()
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"{'Allow: ' + allow + chr(13) + chr(10) if allow else ''}"
            f"{'' if keep else 'Connection: close' + chr(13) + chr(10)}\r\n"
        )
        transport.write(head.encode() + body)
        if not keep:
            self._say_goodbye(transport)

    def _say_goodbye(self, transport: asyncio.Transport) -> None:
        """Send nothing more, and throw away what the client still sends.

        Closing at once would lose the answer: a system that gets bytes for a closed connection tells the client that it
        is broken, whatever there was to read.
        """
        self._release()
        self.drained = 0
        self._wait(LINGER)
        transport.write_eof()

    def _wait(self, seconds: float) -> None:
        """Give the client so long."""
        self.deadline = asyncio.get_running_loop().time() + seconds

    def late(self) -> None:
        """Its time is over; one that does not read its answers gets none."""
        if (self.buffer or self.head is not None) and not self.paused:
            self._answer(408, {"error": f"the request has not come whole within {PATIENCE:g} s"}, False)
        else:
            self.end()

    def _release(self) -> None:
        """Give back what the connection holds of a request."""
        self.counter.held -= len(self.buffer)
        self.buffer, self.head = bytearray(), None

    def _forget(self) -> None:
        """The connection is over."""
        self.counter.connections.pop(self, None)
        self._release()
        self.transport = None


def read_head(text: bytes, counter: Counter) -> Request:
    """The head of a request, if it may be asked; raises Refusal before a byte of its body is waited for."""
    first, *lines = text.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        raise Refusal(400, "not an HTTP request")
    method, target, version = words
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise Refusal(505, "want HTTP/1.1")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or name.lower() in fields:
            raise Refusal(400, "a header that is malformed, or comes twice")
        fields[name.lower()] = value.strip()
    _allow(fields.get("authorization", ""), counter.token)
    path, _, query = target.partition("?")
    if path not in counter.routes:
        raise Refusal(404, f"no such place; there are: {', '.join(counter.routes)}")
    if method != counter.routes[path]:
        raise Refusal(405, f"{path} is asked with {counter.routes[path]}", counter.routes[path])
    asked = fields.get("connection", "").lower()
    keep = asked != "close" and (version == "HTTP/1.1" or asked == "keep-alive")
    waits = fields.get("expect", "").lower() == "100-continue"
    return Request(method, path, query, _length(method, fields), keep, waits)


def _allow(given: str, token: bytes) -> None:
    """Raise Refusal for a client without the token."""
    if token and not hmac.compare_digest(given.encode("latin-1", "replace"), b"Bearer " + token):
        raise Refusal(401, "want the header Authorization: Bearer TOKEN")


def _length(method: str, fields: dict[str, str]) -> int:
    """How many bytes of a body will come."""
    if "transfer-encoding" in fields:
        raise Refusal(501, "want a Content-Length, not pieces (Transfer-Encoding)")
    word = fields.get("content-length", "0" if method == "GET" else "")
    if not (word.isascii() and word.isdecimal() and len(word) < 16):
        raise Refusal(411 if not word else 400, "want a Content-Length")
    if int(word) > MOST_BODY:
        raise Refusal(413, f"a body of {int(word):,} bytes; want at most {MOST_BODY:,}")
    return int(word)
