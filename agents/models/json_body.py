"""A request's body as JSON. Every turn sends the whole conversation again, so its texts are most of the work.

`json` looks at every character of a text; `bytes.replace` finds the few that must be escaped four times as fast.
"""

from __future__ import annotations

import json
from typing import Any

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_RARE = bytes(range(32)).replace(b"\n", b"")
"""Control characters, all but the line break: a text with one is left to `json`."""
_ROLES = {role: f'"{role}"'.encode() for role in ("system", "user", "assistant")}


def to_json(body: dict[str, Any]) -> bytes:
    """The body of a request. Half a surrogate pair, which UTF-8 cannot encode, becomes `?`.

    Args:
        body: With the conversation as `messages` (chat completions), or without.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        return _plain(body)
    rest = _plain({key: value for key, value in body.items() if key != "messages"})
    return b'%s%s"messages":[%s]}' % (rest[:-1], b"," if len(rest) > 2 else b"", b",".join(map(_message, messages)))


def _message(message: dict[str, Any]) -> bytes:
    if len(message) == 2 and type(content := message.get("content")) is str and (role := _ROLES.get(message["role"])):
        return b'{"role":%s,"content":%s}' % (role, _text(content))
    return _plain(message)


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    if len(raw.translate(None, _RARE)) < len(raw):
        return _plain(text)
    return b'"%s"' % raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _plain(value: Any) -> bytes:
    return _ENCODE(value).encode("utf-8", "replace")
