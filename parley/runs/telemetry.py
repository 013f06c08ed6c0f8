"""OpenTelemetry spans of a run (`--trace`): one for the run, one per unit and one per model call.

The standard OTEL_* variables configure the exporter (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_EXPORTER`,
`OTEL_SERVICE_NAME`, …); a tracer provider that the calling program has set is used instead. Calls have the attributes
of the GenAI semantic conventions. Spans contain no prompts, replies or facets, unless
OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is "true". AutoGen's own spans take time for every message even when
they are off; these exist only with `--trace`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from parley.agents import Call, Models, observe_calls
from parley.agents.tracing import chat_span, with_content
from parley.base.errors import ConfigError
from parley.judging import Outcome, Study, Unit

MISSING = "tracing needs OpenTelemetry's SDK: pip install 'parley-autogen[otel]'"


@contextmanager
def traced(study: Study, enabled: bool) -> Iterator[Study]:
    """The study; if tracing is enabled, a copy of it that creates a span for each of its units."""
    if not enabled:
        yield study
        return
    attributes = {"parley.study": study.name, "parley.models": [name.partition("?")[0] for name in study.models()]}
    with _spans() as spans, spans.tracer.start_as_current_span(f"run {study.name}", attributes=attributes):
        yield spans.of(study)


def parent() -> str:
    """The current span as a W3C `traceparent`, to pass to worker processes."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier["traceparent"]


@contextmanager
def traced_in_worker(study: Study, traceparent: str | None) -> Iterator[Study]:
    """Like `traced`, in a worker process: its spans are children of the run's, and it exports them itself."""
    if traceparent is None:
        yield study
        return
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    with _spans() as spans:
        context.attach(TraceContextTextMapPropagator().extract({"traceparent": traceparent}))  # for good
        yield spans.of(study)


@contextmanager
def _spans() -> Iterator[Spans]:
    """Create a span for every call inside the block; export what is left at its end."""
    from opentelemetry import trace

    provider: Any = trace.get_tracer_provider()
    own = not hasattr(provider, "add_span_processor")
    if own:
        provider = _provider()
    spans = Spans(provider.get_tracer("parley"), with_content=with_content())
    try:
        with observe_calls(spans.call):
            yield spans
    finally:
        if own:
            provider.shutdown()


def _provider() -> Any:
    """A tracer provider configured by the environment; not set globally, so that AutoGen's own spans stay off."""
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

        exporter: Any
        match os.environ.get("OTEL_TRACES_EXPORTER", "otlp"):
            case "otlp":
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                exporter = OTLPSpanExporter()
            case "console":
                exporter = ConsoleSpanExporter()
            case "none":
                return TracerProvider()
            case other:
                raise ConfigError(f"OTEL_TRACES_EXPORTER must be otlp, console or none, not '{other}'")
    except ModuleNotFoundError:
        raise ConfigError(MISSING) from None
    name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "parley"}
    provider = TracerProvider(resource=Resource.create(name))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class Spans:
    """Creates spans, as children of the current span."""

    def __init__(self, tracer: Any, *, with_content: bool) -> None:
        self.tracer, self.with_content = tracer, with_content

    def call(self, call: Call) -> None:
        """Send the span of a call that has just ended."""
        chat_span(self.tracer, call, messages=self.with_content)

    def of(self, study: Study) -> Study:
        """A copy of the study that creates a span per unit. A wrapper would not be an instance of its class."""
        traced_study = copy(study)

        async def run(unit: Unit, models: Models) -> Outcome:
            with self.unit(unit):
                return await study.run(unit, models)

        traced_study.run = run  # type: ignore[method-assign]
        return traced_study

    @contextmanager
    def unit(self, unit: Unit) -> Iterator[None]:
        from opentelemetry.trace import StatusCode

        facets = {f"parley.facet.{key}": value for key, value in unit.facets.items()} if self.with_content else {}
        with self.tracer.start_as_current_span(
            "unit", attributes={"parley.unit": unit.id, **facets}, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                # The message may quote a server's reply; the type's name cannot.
                span.set_status(StatusCode.ERROR, str(error) if self.with_content else type(error).__name__)
                raise
