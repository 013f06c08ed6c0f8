"""The viewer's server: on loopback unless told otherwise, and then with a token; no page asks for anything outside."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Middleware

from parley.agents import ConfigError, ParleyError
from parley.runs.diagnosis import find_damage
from parley.viewer import annotations as people
from parley.viewer import api, description
from parley.viewer.api import ROOM, Room
from parley.viewer.assets import content_type, static, static_names
from parley.viewer.library import Library, NotHere

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PAGES = ("/", "/run", "/unit", "/compare", "/pair", "/label")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
SWITCHING = 0.0005
"""Seconds a thread may keep the interpreter: answers go before the index that grows in the background."""
COOKIE = "parley_view"
PATIENCE = 20.0
"""Seconds a connection may take for the head of its next request; see `api.read_body` for what follows the head."""
_LOG = logging.getLogger("parley.viewer")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def make_app(place: Path, *, token: str | None = None) -> web.Application:
    """The application over a run file or a folder of them. With a token, whoever comes must bring it."""
    app = web.Application(middlewares=[_guard(token), _errors], client_max_size=1 << 20)
    app[ROOM] = Room(Library(place))
    for page in PAGES:
        app.router.add_get(page, _shell)
    app.router.add_get("/static/{name}", _static)
    app.add_routes(api.routes)
    app.add_routes(people.routes)
    app.add_routes(description.routes)
    app.on_cleanup.append(_leave)
    return app


async def _leave(app: web.Application) -> None:
    await asyncio.to_thread(app[ROOM].close)


def _guard(token: str | None) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _let_in(request, handler, token)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return guard


def _same(given: str, token: str) -> bool:
    """In constant time; whatever bytes a header or an address may hold."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


async def _let_in(request: web.Request, handler: Handler, token: str | None) -> web.StreamResponse:
    try:
        there = request.url
    except ValueError:
        return web.Response(status=400, text="The Host of this request is no address.")
    if token is None:
        # Another site's page can point a name of its own at this machine; such a name is not ours.
        if not is_loopback(there.host or "") or there.user is not None:
            return web.Response(status=403, text="This viewer answers to localhost only.")
    else:
        given = request.query.get("token")
        if given is not None and request.method == "GET" and _same(given, token):
            kept = [(key, value) for key, value in request.query.items() if key != "token"]
            answer = web.Response(status=303, headers={"Location": str(request.rel_url.with_query(kept))})
            answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
            return answer
        if not _same(request.cookies.get(COOKIE, ""), token):
            return web.Response(status=401, text="Open the address that parley view printed, with its token.")
    # Browsers say who asks. Another site's page, and another port of this machine, may not even read.
    asks = request.headers.get("Sec-Fetch-Site", "none")
    if request.path.startswith("/api/") and asks not in ("same-origin", "none"):
        return web.Response(status=403, text="Only the viewer's own pages may ask for this.")
    if request.method not in ("GET", "HEAD"):
        # A form of another site's can neither send JSON nor hide where it comes from.
        origin = request.headers.get("Origin")
        if request.content_type != "application/json" or (origin is not None and origin != str(there.origin())):
            return web.Response(status=403, text="Only the viewer's own pages may write.")
    return await handler(request)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors for people: one line, as JSON."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.json_response({"error": error.reason}, status=error.status)
    except NotHere as error:
        return web.json_response({"error": str(error)}, status=404)
    except ConfigError as error:
        return web.json_response({"error": str(error)}, status=400)
    except (ParleyError, OSError) as error:
        without_place = str(error).replace(f"{request.app[ROOM].library.root}{os.sep}", "")
        return web.json_response({"error": without_place}, status=500)
    except Exception as error:
        if (line := await asyncio.to_thread(_fault, request)) is None:
            _LOG.exception("the viewer failed at %s", request.path)
            line = f"the viewer failed ({type(error).__name__}); its terminal says more"
        return web.json_response({"error": line}, status=500)


def _fault(request: web.Request) -> str | None:
    """What is wrong with the run that was asked about, if something is."""
    room = request.app[ROOM]
    for name in request.query.getall("run", []) + request.query.getall("with", []):
        with suppress(ParleyError, OSError):
            if what := find_damage(room.library.path(name)):
                return f"{name} is damaged: {what}"
    return None


async def _shell(request: web.Request) -> web.Response:
    return web.Response(text=static("index.html"), content_type="text/html")


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in static_names():
        raise web.HTTPNotFound
    return web.Response(text=static(name), content_type=content_type(name))


def _quiet_logger() -> logging.Logger:
    """Whoever sends what is no HTTP is told so, and does not fill the terminal."""
    found = logging.getLogger("parley.viewer.http")
    found.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))
    return found


async def serve(place: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until cancelled; `announce` is told the address once it answers."""
    token = None if is_loopback(host) else secrets.token_urlsafe(18)
    runner = web.AppRunner(
        make_app(place, token=token),
        access_log=None,
        logger=_quiet_logger(),
        shutdown_timeout=1.0,
        keepalive_timeout=PATIENCE,
        lingering_time=1.0,
    )
    await runner.setup()
    switching = sys.getswitchinterval()
    sys.setswitchinterval(SWITCHING)
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}; try --port 0") from None
        shown = runner.addresses[0][1]
        name = f"[{host}]" if ":" in host else host
        announce(f"http://{name}:{shown}/" + (f"?token={token}" if token else ""))
        await asyncio.Event().wait()
    finally:
        sys.setswitchinterval(switching)
        await runner.cleanup()
