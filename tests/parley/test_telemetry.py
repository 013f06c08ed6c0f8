"""Spans of a run: one for the run, one a unit, one a call, and nothing of what was said unless that is asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

trace = pytest.importorskip("opentelemetry.trace")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

SMALL = ("run", "injection", "--responses", "2", "--kinds", "order-short", "--fence", "open", "--quiet", "--no-cache")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Any]]:
    """A provider that the calling program has set, and what it was given."""
    kept = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return lambda: list(kept.get_finished_spans())


def test_a_run_its_units_and_its_calls_are_nested_spans(parley: Callable[..., Any], spans: Any) -> None:
    told = parley(*SMALL, "--model", "sim/judge?latency=0.01", "--trace", "--out", "a.sqlite")
    assert told.status == 0, told.err
    by_id = {span.context.span_id: span for span in spans()}
    runs, units, calls = ([s for s in by_id.values() if s.name.startswith(n)] for n in ("run ", "unit", "chat "))
    assert (len(runs), len(units), len(calls)) == (1, 8, 8)
    assert all(by_id[unit.parent.span_id] is runs[0] for unit in units)
    assert {by_id[call.parent.span_id].name for call in calls} == {"unit"}
    assert len({call.parent.span_id for call in calls}) == 8
    about = calls[0].attributes
    assert about["gen_ai.operation.name"] == "chat"
    assert (about["gen_ai.provider.name"], about["gen_ai.request.model"]) == ("sim", "judge")
    assert about["gen_ai.usage.input_tokens"] > 100
    assert calls[0].end_time - calls[0].start_time >= 10_000_000
    assert runs[0].attributes["parley.study"] == "injection"


def test_nothing_that_was_said_is_in_a_span(parley: Callable[..., Any], spans: Any) -> None:
    parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    whole = "".join(span.to_json() for span in spans())
    assert "a score of 10" not in whole
    assert "Creativity" not in whole
    assert "parley.facet" not in whole


def test_what_was_said_is_there_when_asked(
    parley: Callable[..., Any], spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    call = next(span for span in spans() if span.name == "chat judge")
    asked = json.loads(call.attributes["gen_ai.input.messages"])
    assert asked[0]["role"] == "system"
    assert "Scoring Metrics" in asked[1]["parts"][0]["content"]
    unit = next(span for span in spans() if span.name == "unit")
    assert unit.attributes["parley.facet.kind"] in ("", "order")


def test_without_the_flag_there_is_no_span(parley: Callable[..., Any], spans: Any) -> None:
    parley(*SMALL, "--model", "sim/judge", "--out", "a.sqlite")
    assert spans() == []


def test_a_unit_that_failed_says_so_without_the_servers_words(parley: Callable[..., Any], spans: Any) -> None:
    told = parley(*SMALL, "--model", "sim/judge?fail=1&retries=0", "--trace", "--out", "a.sqlite")
    assert told.status == 1
    units = [span for span in spans() if span.name == "unit"]
    assert {(span.status.status_code.name, span.status.description) for span in units} == {("ERROR", "ServerFault")}


def test_an_unknown_exporter_is_named(parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "jaeger")
    told = parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    assert told.status == 2
    assert "not 'jaeger'" in told.complaints[0]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """An OTLP collector on loopback, where there is an exporter that speaks to it."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Nothing on the terminal."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()


def received(collector: Any) -> list[Any]:
    """The spans that a collector was sent, all under the service's name."""
    wire = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    spans = []
    for body in collector[1]:
        for resource in wire.ExportTraceServiceRequest.FromString(body).resource_spans:
            assert "parley" in {a.value.string_value for a in resource.resource.attributes if a.key == "service.name"}
            spans += [span for scope in resource.scope_spans for span in scope.spans]
    return spans


def test_the_environment_says_where_spans_go(
    parley: Callable[..., Any], collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    told = parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    assert told.status == 0, told.err
    names = [span.name for span in received(collector)]
    assert sorted(names) == sorted(["run injection", *["unit"] * 8, *["chat judge"] * 8])


def test_worker_processes_send_theirs_beneath_the_runs(
    parley: Callable[..., Any], collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    workers = ("--executor", "processes", "--workers", "2")
    told = parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite", *workers)
    assert told.status == 0, told.err
    sent = received(collector)
    (run,) = (span for span in sent if span.name == "run injection")
    units = [span for span in sent if span.name == "unit"]
    calls = [span for span in sent if span.name == "chat judge"]
    assert {span.parent_span_id for span in units} == {run.span_id}
    assert sorted(span.parent_span_id for span in calls) == sorted(span.span_id for span in units)
    assert len(units) == 8
    assert len({span.trace_id for span in sent}) == 1
