"""Small valid inputs that mutations start from."""

from __future__ import annotations

from tests.bbq_rows import bbq_row

MODELS = ["openai/gpt-4o?temperature=0.2&base_url=http://h/v1", "sim/judge?noise=1&female=+0.5", "local/x", "server/x"]
CONFIG = {
    "study": "malibu",
    "suite": "tiny",
    "rounds": 2,
    "phases": [1, 2],
    "identities": ["gender"],
    "budget_cost": 1.5,
    "model": "sim/judge",
    "cache": False,
    "temperature": 0.2,
}
BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
MERGE = "a: &a {x: 1}\n" + "".join(
    f"{b}: &{b} {{<<: [*{a}, *{a}]}}\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
SUITE = {
    "schema": 1,
    "name": "mine",
    "version": "1",
    "base": [{"id": "baking", "text": "A kitchen.", "stereotype": "none"}],
    "scenario": [
        {"id": f"bakery-{n}", "base": "baking", "text": "Bake bread.", "responses": ["Knead it well.", "Wait a day."]}
        for n in (1, 2)
    ],
}
WORDINGS = {
    "schema": 1,
    "name": "mine",
    "version": "1",
    "language": "en",
    "prompt": {
        **{"judge": "You judge.", "answer": "Answer", "answer_a": "Answer A", "answer_b": "Answer B"},
        **{"single": "{situation} {answer} {question}", "pair": "{situation} {answer_a} {answer_b} {question}"},
    },
    "talk": dict.fromkeys(("first", "discuss", "first_pair", "discuss_pair"), "{low} {high} {format}"),
    "identity": {name: {"adjective": name, "noun": f"a {name} person"} for name in ("female", "male", "young")},
    "otherwise": {"adjective": "{label}", "noun": "{a} {modifier} {person}", "person": "person"},
    "question": [
        {"id": "q", "single": "{low} {high}", "metric": "{metric} {definition} {low} {high}"}
        | {"pair": "A or B?", "pair_ties": "A, B or {tie}?"}
    ],
    "label": [
        {"id": "by", "kind": "byline", "place": "beside", "text": "{answer} by {noun}:"},
        {"id": "is", "kind": "profile", "place": "after", "text": "{A} {adjective} person wrote it."},
    ],
}
IDENTITIES = {
    "categories": {"age": ["young", "old"]},
    "forms": {"young": {"noun": "a youngster", "adjective": "young"}},
    "allow": {"age": ["work"]},
}
BBQ = [bbq_row(0), bbq_row(1)]
BBQ_CSV = [
    ["category", "example_id", "question_index", "question_polarity", "context_condition", "context", "question",
     "ans0", "ans1", "ans2", "label", "answer_info.ans0", "answer_info.ans1", "answer_info.ans2",
     "additional_metadata.stereotyped_groups", "additional_metadata.subcategory"],
    ["Age", "0", "1", "neg", "ambig", "I saw them.", "Who?", "The old man", "The boy", "Unknown", "2",
     "['man', 'old']", "['boy', 'nonOld']", "['unknown', 'unknown']", "['old']", ""],
]  # fmt: skip
QAS = [
    {"id": f"q{n}", "question": "When?", "answers": [{"text": "1066", "answer_start": 0}] * n, "is_impossible": not n}
    for n in (0, 1, 2)
]
SQUAD = {"version": "v2.0", "data": [{"title": "Normans", "paragraphs": [{"context": "In 1066.", "qas": QAS}]}]}
TEXTS = [{"id": n, "text": "A kind word.", "topic": "work", "group": "a", "score": 0.5} for n in (1, 2)]
PAIRS = [
    {
        "id": f"{n}",
        "prompt": [{"role": "user", "content": f"Topic number {n} about things {n * 7}?"}],
        "chosen": [{"role": "assistant", "content": "Kind."}],
        "rejected": [{"role": "assistant", "content": "Unkind."}],
        "score_chosen": 1.0,
        "score_rejected": 6.0,
        "meta": {"topic": f"Topic number {n}", "bias": "age", "round_chosen": 1, "speaker_chosen": "Ann"},
    }
    for n in range(12)
]
