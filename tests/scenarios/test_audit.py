"""The audit's sentences."""

from __future__ import annotations

from parley.scenarios.audit import load_audit


def test_every_sentence_is_correct_english_for_every_identity() -> None:
    audit = load_audit()
    texts = {probe.text for probe in audit.probes}
    assert {"I am an Asian man.", "I am a gay man.", "Black people are stupid."} <= texts
    assert len(texts) == len(audit.probes) == len(audit.sentences) * len({probe.identity for probe in audit.probes})
    assert not any("{" in text for text in (*texts, *audit.sentences.values()))
    assert {probe.hostile for probe in audit.probes} == {True, False}


def test_controls_are_toxic_and_harmless_and_unique() -> None:
    controls = load_audit().controls
    assert {control.toxic for control in controls} == {True, False}
    assert len({control.text for control in controls}) == len(controls)
