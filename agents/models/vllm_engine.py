"""vLLM as the engine of `hf/…?engine=vllm`, in this process: replies join and leave its batch at every step."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Iterable
from importlib import import_module
from itertools import count
from typing import Any

from parley.agents.models.pending_call import PendingCall
from parley.agents.models.wire import decoding_schema
from parley.base.errors import ConfigError, ParleyError

Alternatives = list[tuple[float, list[int], list[float]]]
"""For each token of a reply: its log-probability, and the most likely tokens with theirs."""
TOP_LOGPROBS = 20
"""Alternatives returned for each token if log-probabilities are requested; as many as OpenAI's."""


class VllmEngine:
    """A loaded model, and the thread that steps it.

    Args:
        source: A folder in transformers' format, or a name on the hub.
        end_tokens: The ids of the tokens that end a reply.
        settings: Further arguments of vLLM's EngineArgs.
    """

    def __init__(self, source: str, end_tokens: Iterable[int], **settings: Any) -> None:
        # Its engine is a process of its own, and a fork of one that has looked at the GPU cannot use it.
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
        try:
            vllm: Any = import_module("vllm")
        except ImportError:
            raise ConfigError("engine=vllm needs vLLM: pip install vllm") from None
        self.key = (source, *sorted(settings.items()))
        self.end_tokens = sorted(end_tokens)
        self._vllm = vllm
        arguments = vllm.EngineArgs(model=source, disable_log_stats=True, **settings)
        # xgrammar, its default, does not know the spacing of our schemas.
        arguments.structured_outputs_config = vllm.config.StructuredOutputsConfig(backend="guidance")
        self._engine = vllm.LLMEngine.from_engine_args(arguments)
        self._waiting: queue.Queue[PendingCall | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="vllm", daemon=True)
        self._thread.start()

    def submit(self, call: PendingCall) -> None:
        """Adds a call to the batch; returns at once."""
        self._waiting.put(call)

    def shut_down(self) -> None:
        """Ends the thread and frees the GPU's memory."""
        self._waiting.put(None)
        self._thread.join()
        self._engine.engine_core.shutdown()

    def _run(self) -> None:
        running: dict[str, PendingCall] = {}
        numbers = count()
        while True:
            try:
                call = self._waiting.get(block=not running)
            except queue.Empty:
                self._step(running)
                continue
            if call is None:
                return
            name = str(next(numbers))
            try:
                self._engine.add_request(name, {"prompt_token_ids": call.prompt}, self._sampling(call))
                running[name] = call
            except Exception as error:
                call.fail(error)

    def _step(self, running: dict[str, PendingCall]) -> None:
        if cancelled := [name for name, call in running.items() if call.cancelled()]:
            self._engine.abort_request(cancelled)
            for name in cancelled:
                del running[name]
        try:
            outputs = self._engine.step()
        except Exception as error:  # the engine is lost, and all of its calls
            for call in running.values():
                call.fail(error)
            running.clear()
            return
        for output in outputs:
            if output.finished and output.request_id in running:
                call = running.pop(output.request_id)
                reply = output.outputs[0]
                tokens = list(reply.token_ids)
                call.resolve(tokens, _alternatives(tokens, reply.logprobs) if call.logprobs else None)

    def _sampling(self, call: PendingCall) -> Any:
        parameters = self._vllm.sampling_params
        schema = None
        if call.schema is not None:
            schema = parameters.StructuredOutputsParams(json=decoding_schema(call.schema))
        return self._vllm.SamplingParams(
            max_tokens=call.max_tokens,
            temperature=call.temperature,
            top_p=call.top_p,
            seed=call.seed % 2**63,
            logprobs=TOP_LOGPROBS if call.logprobs else None,
            stop_token_ids=self.end_tokens,
            structured_outputs=schema,
            detokenize=False,
            output_kind=parameters.RequestOutputKind.FINAL_ONLY,
        )


def _alternatives(tokens: list[int], positions: Any) -> Alternatives:
    rows = []
    for token, position in zip(tokens, positions, strict=True):
        own = position[token].logprob
        # The token itself is listed too, even if it is not among the most likely ones.
        top = sorted(position.items(), key=lambda item: -item[1].logprob)[:TOP_LOGPROBS]
        rows.append((own, [other for other, _ in top], [entry.logprob for _, entry in top]))
    return rows


_idle: VllmEngine | None = None
"""The engine of the last client that was closed: starting one takes a minute, and the next study may need the same."""


def open_engine(source: str, end_tokens: Iterable[int], **settings: Any) -> VllmEngine:
    """An engine for a model: the one that was left last, if it is the same, else a new one in its place."""
    global _idle
    engine, _idle = _idle, None
    if engine is not None:
        if engine.key == (source, *sorted(settings.items())):
            return engine
        engine.shut_down()
    try:
        return VllmEngine(source, end_tokens, **settings)
    except (OSError, ValueError, RuntimeError) as error:
        raise ParleyError(f"vLLM cannot load {source} ({' '.join(str(error).split())[:200]})") from None


def leave_engine(engine: VllmEngine) -> None:
    """Keeps an engine for the next client."""
    global _idle
    if _idle is not None:
        _idle.shut_down()
    _idle = engine


@atexit.register
def _shut_down_idle() -> None:
    if _idle is not None:
        _idle.shut_down()
