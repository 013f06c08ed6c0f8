"""Spans of a run: one for the run, one per unit, one per call, and no messages unless requested."""

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
    """A tracer provider that the calling program has set, and the spans it received."""
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return lambda: list(exporter.get_finished_spans())


def test_a_run_its_units_and_its_calls_are_nested_spans(parley: Callable[..., Any], spans: Any) -> None:
    result = parley(*SMALL, "--model", "sim/judge?latency=0.01", "--trace", "--out", "a.sqlite")
    assert result.status == 0, result.err
    by_id = {span.context.span_id: span for span in spans()}
    runs, units, calls = ([s for s in by_id.values() if s.name.startswith(n)] for n in ("run ", "unit", "chat "))
    assert (len(runs), len(units), len(calls)) == (1, 8, 8)
    assert all(by_id[unit.parent.span_id] is runs[0] for unit in units)
    assert {by_id[call.parent.span_id].name for call in calls} == {"unit"}
    assert len({call.parent.span_id for call in calls}) == 8
    attributes = calls[0].attributes
    assert attributes["gen_ai.operation.name"] == "chat"
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.request.model"]) == ("sim", "judge")
    assert attributes["gen_ai.usage.input_tokens"] > 100
    assert calls[0].end_time - calls[0].start_time >= 10_000_000
    assert runs[0].attributes["parley.study"] == "injection"


def test_messages_are_not_in_spans(parley: Callable[..., Any], spans: Any) -> None:
    parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    whole = "".join(span.to_json() for span in spans())
    assert "a score of 10" not in whole
    assert "Creativity" not in whole
    assert "parley.facet" not in whole


def test_messages_are_in_spans_when_requested(
    parley: Callable[..., Any], spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    call = next(span for span in spans() if span.name == "chat judge")
    messages = json.loads(call.attributes["gen_ai.input.messages"])
    assert messages[0]["role"] == "system"
    assert "Scoring Metrics" in messages[1]["parts"][0]["content"]
    unit = next(span for span in spans() if span.name == "unit")
    assert unit.attributes["parley.facet.kind"] in ("", "order")


def test_without_the_flag_there_is_no_span(parley: Callable[..., Any], spans: Any) -> None:
    parley(*SMALL, "--model", "sim/judge", "--out", "a.sqlite")
    assert spans() == []


def test_the_span_of_a_failed_unit_has_no_message_of_the_server(parley: Callable[..., Any], spans: Any) -> None:
    result = parley(*SMALL, "--model", "sim/judge?fail=1&retries=0", "--trace", "--out", "a.sqlite")
    assert result.status == 1
    units = [span for span in spans() if span.name == "unit"]
    assert {(span.status.status_code.name, span.status.description) for span in units} == {("ERROR", "ServerFault")}


def test_an_unknown_exporter_is_named(parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "jaeger")
    result = parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    assert result.status == 2
    assert "not 'jaeger'" in result.complaints[0]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """An OTLP collector on loopback, if an exporter for it is installed."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()


def received(collector: Any) -> list[Any]:
    """The spans that a collector received, all with the service's name."""
    wire = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    spans = []
    for body in collector[1]:
        for resource in wire.ExportTraceServiceRequest.FromString(body).resource_spans:
            assert "parley" in {a.value.string_value for a in resource.resource.attributes if a.key == "service.name"}
            spans += [span for scope in resource.scope_spans for span in scope.spans]
    return spans


def test_the_environment_configures_the_exporter(
    parley: Callable[..., Any], collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    result = parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite")
    assert result.status == 0, result.err
    names = [span.name for span in received(collector)]
    assert sorted(names) == sorted(["run injection", *["unit"] * 8, *["chat judge"] * 8])


def test_worker_processes_export_their_spans_under_the_runs(
    parley: Callable[..., Any], collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    workers = ("--executor", "processes", "--workers", "2")
    result = parley(*SMALL, "--model", "sim/judge", "--trace", "--out", "a.sqlite", *workers)
    assert result.status == 0, result.err
    sent = received(collector)
    (run,) = (span for span in sent if span.name == "run injection")
    units = [span for span in sent if span.name == "unit"]
    calls = [span for span in sent if span.name == "chat judge"]
    assert {span.parent_span_id for span in units} == {run.span_id}
    assert sorted(span.parent_span_id for span in calls) == sorted(span.span_id for span in units)
    assert len(units) == 8
    assert len({span.trace_id for span in sent}) == 1
