// Facets as people read them: the names of filters and columns, and values that a plan stores as codes.

const NAMES = { label: "right answer", target: "stereotyped answer", unknown: "answer “unknown”", names: "proper names", other: "other identity", example_id: "example", topic_id: "topic id", response_a: "text of A", response_b: "text of B", ask: "score asked for" };
const WORDS = {
  phase: { 1: "single answers", 2: "pairs", 3: "graded answers", 4: "pairs of graded answers" }, order: { 0: "as planned", 1: "swapped" }, assignment: { 0: "as written", 1: "exchanged" }, stage: { talk: "debate" },
  condition: { ambig: "ambiguous", disambig: "disambiguated" }, polarity: { neg: "negative", nonneg: "non-negative" },
};
const OPTIONS = new Set(["label", "target", "unknown"]); // the number of an option, from 0; -1 where there is none
const UNLABELLED = new Set(["identity", "other", "identity_a", "identity_b"]);

// Filters that few need stay closed, however few values they have.
export const TECHNICAL = new Set(["label", "target", "unknown", "names", "order", "assignment", "response_a", "response_b", "repeat", "example_id", "question", "identity_a", "identity_b"]);

export function facetName(name) { return NAMES[name] || name.replace(/_[ab]$/, (side) => side.toUpperCase()).replaceAll("_", " "); }

// What words of ours mean, as in docs/glossary.md.
export const GLOSSARY = {
  base: "An area of life, e.g. law or fitness, with the stereotype it probes; scenarios are derived from it. MALIBU's cluster.",
  panel: "The judges of a unit together: its score is the mean of theirs, its choice the majority's, or the chair's where there is one.",
  identity: "The label that a prompt puts on the author of an answer, e.g. female or muslim. The answer stays the same.",
  wording: "How a prompt says whose answer it is (label wording: a byline, a profile, a first name), or how it asks (question wording).",
  control: "A unit in which nothing is varied, or a harmless text in place of an attempt: what is seen without a cause.",
};

// Those of them that occur in some texts, as [word, meaning] pairs, unless a text itself says what "a base is".
export function wordsOf(texts) {
  const all = texts.join(" ");
  return Object.entries(GLOSSARY).filter(([word]) => new RegExp(`\\b${word}s?\\b`, "i").test(all) && !new RegExp(`\\ban? ${word} is\\b`, "i").test(all));
}

// The words of a run's labels, by the codes in its plan.
let wordings = {};
export function knowWordings(summary) { wordings = summary.wordings || {}; }

export function facetValue(name, value) {
  if (name === "wording" && wordings[value]) return wordings[value];
  if (value === "") return UNLABELLED.has(name) ? "no label" : "(none)";
  if (WORDS[name]?.[value]) return WORDS[name][value];
  if (value === "true" || value === "false") return value === "true" ? "yes" : "no";
  if (!/^-?\d+$/.test(value)) return value;
  if (OPTIONS.has(name)) return Number(value) < 0 ? "none" : `option ${Number(value) + 1}`;
  if (/^response_[ab]$/.test(name)) return `text ${value}`;
  if (name === "order" && value.length === 3) return `options ${[...value].map((digit) => Number(digit) + 1).join(" ")}`;
  return name === "repeat" ? `no. ${Number(value) + 1}` : value;
}
