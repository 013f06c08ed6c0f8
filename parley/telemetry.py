"""OpenTelemetry spans of a run, where they are asked for (`--trace`): one for the run, each unit and each model call.

The standard OTEL_* variables say where to (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_EXPORTER`, `OTEL_SERVICE_NAME`,
…); a tracer provider that the calling program has set is used as it is. Calls bear the GenAI conventions' attributes.
Nothing that was said, and no facet of a unit, is in a span, unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
is "true".
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from parley.agents import Call, ConfigError, Models, observe_calls
from parley.judging import Outcome, Study, Unit

MISSING = "tracing needs OpenTelemetry's SDK: pip install 'parley-autogen[otel]'"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@contextmanager
def traced(study: Study, wanted: bool) -> Iterator[Study]:
    """The study, or, where spans are wanted, one that makes a span of each of its units."""
    if not wanted:
        yield study
        return
    about = {"parley.study": study.name, "parley.models": [name.partition("?")[0] for name in study.models()]}
    with _spans() as spans, spans.tracer.start_as_current_span(f"run {study.name}", attributes=about):
        yield spans.of(study)


def parent() -> str:
    """The run's span, by the name that a worker process knows it by (W3C's `traceparent`)."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier["traceparent"]


@contextmanager
def traced_in_worker(study: Study, run: str | None) -> Iterator[Study]:
    """The same in a worker process: spans of its units, beneath the run's, sent by the worker itself."""
    if run is None:
        yield study
        return
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    with _spans() as spans:
        context.attach(TraceContextTextMapPropagator().extract({"traceparent": run}))  # for the rest of its life
        yield spans.of(study)


@contextmanager
def _spans() -> Iterator[Spans]:
    """Every call that ends meanwhile is a span, too; what was made is sent at the end."""
    from opentelemetry import trace

    provider: Any = trace.get_tracer_provider()
    own = not hasattr(provider, "add_span_processor")
    if own:
        provider = _provider()
    spans = Spans(provider.get_tracer("parley"), with_content=os.environ.get(CONTENT, "").lower() == "true")
    try:
        with observe_calls(spans.call):
            yield spans
    finally:
        if own:
            provider.shutdown()


def _provider() -> Any:
    """A tracer provider as the environment describes it; not the process's own, so that AutoGen's spans stay off."""
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
                raise ConfigError(f"OTEL_TRACES_EXPORTER is otlp, console or none here, not '{other}'")
    except ModuleNotFoundError:
        raise ConfigError(MISSING) from None
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "parley"}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class Spans:
    """Makes the spans; their parents are whatever is current where they begin."""

    def __init__(self, tracer: Any, *, with_content: bool) -> None:
        self.tracer, self.with_content = tracer, with_content

    def call(self, call: Call) -> None:
        """A call that has just ended."""
        from opentelemetry.trace import SpanKind

        plain = call.model.partition("?")[0]
        provider, _, model = plain.partition("/")
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": call.prompt_tokens,
            "gen_ai.usage.output_tokens": call.completion_tokens,
            "parley.cached": call.cached,
            "parley.attempts": call.attempts,
        }
        if call.cost is not None:
            attributes["parley.cost"] = call.cost
        if self.with_content:
            said = [_message(piece.role, piece.text) for piece in call.prompt]
            attributes["gen_ai.input.messages"] = json.dumps(said, ensure_ascii=False)
            attributes["gen_ai.output.messages"] = json.dumps([_message("assistant", call.reply)], ensure_ascii=False)
        end = time.time_ns()
        start = end - round(call.latency * 1e9)
        span = self.tracer.start_span(f"chat {model}", kind=SpanKind.CLIENT, attributes=attributes, start_time=start)
        span.end(end)

    def of(self, study: Study) -> Study:
        """The same study, but that each unit it holds is a span. A copy: a wrapper would not be of its class."""
        twin = copy(study)

        async def run(unit: Unit, models: Models) -> Outcome:
            with self.unit(unit):
                return await study.run(unit, models)

        twin.run = run  # type: ignore[method-assign]
        return twin

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
                # The error's text may quote what a server said; its kind may not.
                span.set_status(StatusCode.ERROR, str(error) if self.with_content else type(error).__name__)
                raise


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
