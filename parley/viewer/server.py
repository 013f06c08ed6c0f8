"""The viewer's server. It listens on loopback by default and requires a token elsewhere; no page loads anything from
other machines."""

from __future__ import annotations

import asyncio
import errno
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
from parley.runs.example import MARK, is_example
from parley.runs.reading import NotFound
from parley.viewer import api
from parley.viewer.api import STATE, ViewerState
from parley.viewer.export import content_type, static, static_names
from parley.viewer.run_folder import RunFolder

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PAGES = ("/", "/run", "/unit", "/compare", "/pair")
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
PORT = 7575
SWITCH_INTERVAL_SECONDS = 0.0005
"""Python's switch interval: short, so that indexing in the background does not delay requests."""
COOKIE = "parley_view"
HEAD_TIMEOUT_SECONDS = 20.0
"""Seconds for a connection's next request line and headers; `api.read_body` limits the time for the body."""
_LOG = logging.getLogger("parley.viewer")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def make_app(path: Path, *, token: str | None = None) -> web.Application:
    """The viewer as an aiohttp application.

    Args:
        path: a run file, or a folder of them.
        token: required from every client; without one, only requests to a loopback name are answered.
    """
    app = web.Application(middlewares=[_guard(token), _errors_as_json], client_max_size=1 << 20)
    app[STATE] = ViewerState(RunFolder(path))
    for page in PAGES:
        app.router.add_get(page, _page)
    app.router.add_get("/static/{name}", _static)
    app.add_routes(api.routes)
    app.on_cleanup.append(_close_runs)
    return app


async def _close_runs(app: web.Application) -> None:
    await asyncio.to_thread(app[STATE].close)


def _guard(token: str | None) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _authorize(request, handler, token)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return guard


def _is_token(text: str, token: str) -> bool:
    """Compared in constant time; a header or an address may contain any bytes."""
    return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), token.encode())


async def _authorize(request: web.Request, handler: Handler, token: str | None) -> web.StreamResponse:
    try:
        url = request.url
        host = url.host or ""  # parsed on first use, and not before
    except ValueError:
        return web.Response(status=400, text="The Host header of this request is not valid.")
    if token is None:
        # DNS rebinding: another site can point its own domain name at this machine.
        if not is_loopback(host) or url.user is not None:
            return web.Response(status=403, text="This viewer only answers requests to localhost.")
    else:
        token_in_address = request.query.get("token")
        if token_in_address is not None and request.method == "GET" and _is_token(token_in_address, token):
            # The browser keeps the token as a cookie, and the redirect removes it from the address.
            other_params = [(key, value) for key, value in request.query.items() if key != "token"]
            place = str(request.rel_url.with_query(other_params)).lstrip("/\\")  # "//" begins with a host
            redirect = web.Response(status=303, headers={"Location": f"/{place}"})
            redirect.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
            return redirect
        if not _is_token(request.cookies.get(COOKIE, ""), token):
            return web.Response(status=401, text="Open the address that parley view printed, with its token.")
    # Browsers say which site a request comes from. Other sites, and other ports of this machine, may not even read.
    site = request.headers.get("Sec-Fetch-Site", "none")
    if request.path.startswith("/api/") and site not in ("same-origin", "none"):
        return web.Response(status=403, text="Only the viewer's own pages may read this.")
    if request.method not in ("GET", "HEAD"):
        # Another site's form can neither send JSON nor hide its origin.
        origin = request.headers.get("Origin")
        if request.content_type != "application/json" or (origin is not None and origin != str(url.origin())):
            return web.Response(status=403, text="Only the viewer's own pages may write.")
    return await handler(request)


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error as one line in JSON."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.json_response({"error": error.reason}, status=error.status)
    except NotFound as error:
        return web.json_response({"error": str(error)}, status=404)
    except ConfigError as error:
        return web.json_response({"error": str(error)}, status=400)
    except (ParleyError, OSError) as error:
        without_place = str(error).replace(f"{request.app[STATE].folder.root}{os.sep}", "")
        return web.json_response({"error": without_place}, status=500)
    except Exception as error:
        if (message := await asyncio.to_thread(_damage, request)) is None:
            _LOG.exception("the viewer failed at %s", request.path)
            message = f"the viewer failed ({type(error).__name__}); see its terminal for details"
        return web.json_response({"error": message}, status=500)


def _damage(request: web.Request) -> str | None:
    """The damage to the requested run, if any."""
    folder = request.app[STATE].folder
    for name in request.query.getall("run", []) + request.query.getall("with", []):
        with suppress(ParleyError, OSError):
            if fault := find_damage(folder.path(name)):
                return f"{name} is damaged: {fault}"
    return None


async def _page(request: web.Request) -> web.Response:
    page = static("index.html")
    if is_example(request.app[STATE].folder.selected):
        page = page.replace("<main ", f'<p class="example" role="note">{MARK}</p>\n<main ', 1)
    return web.Response(text=page, content_type="text/html")


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in static_names():
        raise web.HTTPNotFound
    return web.Response(text=static(name), content_type=content_type(name))


def _quiet_logger() -> logging.Logger:
    """A logger without messages on invalid HTTP requests, whose senders get an error."""
    logger = logging.getLogger("parley.viewer.http")
    logger.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))
    return logger


async def serve(path: Path, host: str, port: int | None, announce: Callable[[str], None]) -> None:
    """Serve until cancelled.

    Args:
        path: a run file, or a folder of them.
        host: the address to listen on; one that is not loopback requires a token, which is part of the printed address.
        port: the port; 0 takes a free one; None takes 7575, or a free one if that is taken.
        announce: called with the viewer's address once it answers.
    """
    token = None if is_loopback(host) else secrets.token_urlsafe(18)
    runner = web.AppRunner(
        make_app(path, token=token),
        access_log=None,
        logger=_quiet_logger(),
        shutdown_timeout=1.0,
        keepalive_timeout=HEAD_TIMEOUT_SECONDS,
        lingering_time=1.0,
    )
    await runner.setup()
    previous_interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        try:
            await web.TCPSite(runner, host, PORT if port is None else port).start()
        except OSError as error:
            if port is None and error.errno == errno.EADDRINUSE:
                await web.TCPSite(runner, host, 0).start()
            else:
                raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}; try --port 0") from None
        actual_port = runner.addresses[0][1]
        name = f"[{host}]" if ":" in host else host
        announce(f"http://{name}:{actual_port}/" + (f"?token={token}" if token else ""))
        await asyncio.Event().wait()
    finally:
        sys.setswitchinterval(previous_interval)
        await runner.cleanup()
