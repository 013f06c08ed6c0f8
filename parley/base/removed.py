"""Error messages for commands, flags, settings and plug-ins of earlier versions, with their replacements."""

from __future__ import annotations

REMOVED = {
    # Commands, and verbs of commands
    "attention": "parley run attention --from FRAMING_RUN",
    "audit": "parley report DATASET",
    "calibrate": "python -m benchmarks.calibration, in a checkout",
    "card": "parley run malibu --design silent, whose report says first whether the model can judge",
    "check": "a few lines on parley.report(RUN) (docs/reading.md)",
    "import": "parley.bbq_scores(frame), parley.squad_scores(frame); sqlite3 RUN .recover (docs/runs.md)",
    "labels": "parley export RUN --format csv, and parley report RUN --labels FILE.csv (docs/datasets.md)",
    "pack": "gzip RUN after sqlite3 RUN \"VACUUM INTO 'NEW'\" (docs/runs.md)",
    "plan": "parley run STUDY --dry-run",
    "salvage": "sqlite3 RUN .recover | sqlite3 NEW (docs/runs.md)",
    "scenarios derive": "parley run malibu-derive --to FILE",
    "scenarios respond": "parley run malibu-respond --to FILE",
    "score": "parley run rubric --data FILE",
    "topics": "parley scenarios list BIAS, or parley run topics --to FILE",
    "unpack": "gunzip RUN.sqlite.gz",
    # Flags, also as settings in a config file or in Python: --some-flag stands for some_flag
    "--labels": "parley report RUN --labels FILE.csv (docs/datasets.md)",
    "--lines": "parley.report(RUN), or parley report RUN --json (docs/reading.md)",
    "--cards": "parley compare RUN RUN",
    "control": "train on pairs in which you planted what training must change (docs/training.md)",
    "full_determinism": "resuming gives the same result; kernels on a GPU round as torch does",
    "gguf": 'inference_backend = "hf" writes no model.gguf',
    "rl.max_seconds": "rl.max_steps; the same command resumes what was stopped",
    "rl.probe_steps": "OUT/rl/log.jsonl has every update's reward; parley train evaluate has held-out topics",
    "rlaif.readout": "a labeller that gives the same label in both orders: [rlaif] labeller",
    "rl.use_vllm": "TRL's RLOOTrainer on the same pairs (docs/training.md)",
    "stages": "parley train sft, reward or rl; a method of your own is a TRL trainer on the pairs (docs/training.md)",
    "--no-performance": "--without performance",
    "--calibration": "--criteria 'toxicity < 0.1' sets a threshold",
    "--export": "parley export RUN --to FOLDER",
    "--plan": "sqlite3 RUN \"SELECT value FROM run WHERE key LIKE 'analysis_plan%'\"",
    "--from": "parley power --sd, with the sd of the table mde of a similar run's report",
    "--all": "parley report RUN --json, or its page",
    "--formats": "parley report RUN --figures all writes SVG, PDF and PNG",
    "--sd-base": "--sd, the standard deviation of a base's mean difference (docs/plan.md)",
    "--sd-residual": "--sd, the standard deviation of a base's mean difference (docs/plan.md)",
    "--sd-scenario": "--sd, the standard deviation of a base's mean difference (docs/plan.md)",
    "--width": "parley report RUN --figures all draws forest plots 7.2 inches wide",
    "--limits": "parley run STUDY --dry-run counts calls, tokens and cost",
    "--wordings-per-base": "another --seed draws other wordings for the bases; report both runs",
    "--label-kinds": "--wordings FILE, with the label wordings that you want (docs/plan.md)",
    "--label-places": "--wordings FILE, with the label wordings that you want (docs/plan.md)",
    "--rtp": "parley run referee reads the shipped statements of each bias type",
    "--examples": "--design paper shows the debaters its examples",
    "--flagged": "parley view RUN marks the texts that read like an instruction",
    "--readout": "--design silent (malibu, rldf), which reads the probabilities of the tokens (docs/models.md)",
    "--meaning": "parley run rubric --data FILE, with a rubric of your own on drafts and originals",
    "--instructions": "the audit reads the instructions in the export's manifest.json",
    # Studies, scorers and other plug-ins, after their kind: "study NAME", "scorer NAME", "executor NAME"
    "study injection": "rubric --data FILE, on your texts with and without the instruction",
    "study card": "malibu with --design silent, whose report says first whether the model can judge",
    "method fairness-prompt-rule": "a method of your own (docs/mabrf.md)",
    "method logprob": "a method of your own (docs/mabrf.md)",
    "method stardtox-rule": "a method of your own (docs/mabrf.md)",
    "study toxicity": "a scorer in three lines of Python (docs/stardtox.md)",
}
"""Removed names and their replacements."""


def instead(typed: str) -> str | None:
    """The message for something that was removed; None if it never existed.

    Args:
        typed: A command, a command with its verb, a flag, a setting, or the kind and the name of a plug-in.
    """
    flag = "--" + typed.replace("_", "-")
    removed = next((name for name in (typed, flag) if name in REMOVED), None)
    return f"it was removed; instead: {REMOVED[removed]}" if removed else None
