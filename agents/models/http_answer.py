"""Reads HTTP/1.1 answers from the bytes of a connection: whole ones, chunked and compressed ones too. No I/O."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from parley.agents.models.body import TooLong

MAX_HEAD_BYTES = 2**16
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5]\d\d)(?: |$)", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\n]*)?")


class BadAnswer(ConnectionError):
    """The connection was closed before the answer was complete, or the answer is not HTTP."""


class Answer(NamedTuple):
    """A server's whole answer."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    """Decompressed."""


class Head(NamedTuple):
    """What an answer's first lines say."""

    status: int
    headers: dict[str, str]
    length: int | None
    """Of the body, if it is known beforehand."""
    chunked: bool
    keeps: bool
    """Whether the connection can be used again."""

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the connection's end shows where the body ends."""
        return self.length is None and not self.chunked


def parse_head(text: str) -> Head:
    """The status line and the headers; raises `BadAnswer`."""
    first, *lines = text.split("\r\n")
    line = _STATUS_LINE.match(first)
    if line is None:
        raise BadAnswer("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for header in lines:
        name, colon, value = header.partition(":")
        if not colon or not name or name != name.strip():
            raise BadAnswer("the answer has a malformed header")
        name, value = name.lower(), value.strip()
        if name == "content-length" and headers.get(name, value) != value:
            raise BadAnswer("the answer has two lengths")
        headers[name] = value
    status, length = int(line[2]), headers.get("content-length")
    coding = headers.get("transfer-encoding", "").lower()
    if coding not in ("", "identity", "chunked"):
        raise BadAnswer(f"the answer has the transfer encoding {coding[:40]}")
    if status in (204, 304) or status < 200:
        length = "0"
    elif length is not None and not _LENGTH.fullmatch(length):
        raise BadAnswer("the answer has a malformed length")
    chunked = coding == "chunked" and length != "0"
    connection = headers.get("connection", "").lower()
    # With both, the length may be a lie that the next answer on the connection would pay for.
    keeps = (connection == "keep-alive" if line[1] == "0" else "close" not in connection) and not (chunked and length)
    return Head(status, headers, None if chunked or length is None else int(length), chunked, keeps)


class AnswerReader:
    """One answer, read as it arrives.

    Args:
        max_bytes: Size limit of its body.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer, self._body = bytearray(), bytearray()
        self.head: Head | None = None

    def feed(self, data: bytes) -> bool:
        """Add bytes; returns whether the answer is complete. Raises `BadAnswer` or `TooLong`."""
        buffer = self._buffer
        buffer += data
        while self.head is None:
            end = buffer.find(b"\r\n\r\n")
            if (len(buffer) if end < 0 else end) > MAX_HEAD_BYTES:
                raise BadAnswer("the answer's headers are too long")
            if end < 0:
                return False
            head = parse_head(buffer[:end].decode("latin-1"))
            del buffer[: end + 4]
            if head.status >= 200:  # others announce the answer
                self.head = head
        if self.head.chunked:
            return self._read_chunks()
        length = self.head.length
        if (len(buffer) if length is None else length) > self._max_bytes:
            raise TooLong(self._max_bytes)
        return length is not None and len(buffer) >= length

    def _read_chunks(self) -> bool:
        buffer, body = self._buffer, self._body
        while (line_end := buffer.find(b"\r\n", 0, MAX_HEAD_BYTES)) >= 0:
            size = _CHUNK.fullmatch(buffer, 0, line_end)
            if size is None:
                raise BadAnswer("the answer has a malformed chunk")
            start, length = line_end + 2, int(size[1], 16)
            if not length:
                end = buffer.find(b"\r\n\r\n", line_end)  # after the trailers, if there are any
                if end < 0 and len(buffer) > MAX_HEAD_BYTES:
                    raise BadAnswer("the answer's trailers are too long")
                if end >= 0:
                    del buffer[: end + 4]
                return end >= 0
            if len(body) + length > self._max_bytes:
                raise TooLong(self._max_bytes)
            end = start + length
            if len(buffer) < end + 2:
                return False
            if buffer[end : end + 2] != b"\r\n":
                raise BadAnswer("the answer has a malformed chunk")
            body += memoryview(buffer)[start:end]
            del buffer[: end + 2]
        if len(buffer) > MAX_HEAD_BYTES:
            raise BadAnswer("the answer has a malformed chunk")
        return False

    def answer(self) -> tuple[Answer, bool]:
        """The answer, and whether the connection can be used again. Raises `BadAnswer` or `TooLong`."""
        head = self.head
        assert head is not None, "an answer has a head"
        if head.chunked:
            body, rest = bytes(self._body), len(self._buffer)
        else:
            length = len(self._buffer) if head.length is None else head.length
            body, rest = bytes(self._buffer[:length]), len(self._buffer) - length
        body = _decompress(body, head.headers.get("content-encoding", ""), self._max_bytes)
        return Answer(head.status, head.headers, body), head.keeps and not rest and not head.ends_with_connection


def _decompress(body: bytes, coding: str, max_bytes: int) -> bytes:
    if coding.lower() in ("", "identity") or not body:
        return body
    if coding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise BadAnswer(f"the answer has the content encoding {coding[:40]}, which was not asked for")
    unpacked = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either format, by its first bytes
    try:
        text = unpacked.decompress(body, max_bytes + 1)
    except zlib.error:
        raise BadAnswer("the answer cannot be decompressed") from None
    if len(text) > max_bytes:
        raise TooLong(max_bytes)
    if not unpacked.eof or unpacked.unused_data:
        raise BadAnswer("the answer cannot be decompressed")
    return text
