// Facets as people read them: the names of filters and columns, and values that a plan stores as codes.

const NAMES = { label: "right answer", target: "stereotyped answer", unknown: "answer “unknown”", names: "proper names", other: "other identity", example_id: "example", topic_id: "topic's id", response_a: "text of A", response_b: "text of B", ask: "score asked for" };
const WORDS = {
  phase: { 1: "single answers", 2: "pairs", 3: "graded answers", 4: "pairs of graded answers" }, order: { 0: "as planned", 1: "swapped" }, assignment: { 0: "as written", 1: "exchanged" }, stage: { talk: "debate" },
  condition: { ambig: "ambiguous", disambig: "disambiguated" }, polarity: { neg: "negative", nonneg: "non-negative" },
};
const OPTIONS = new Set(["label", "target", "unknown"]); // the number of an option, from 0; -1 where there is none
const UNLABELLED = new Set(["identity", "other", "identity_a", "identity_b"]);

// Filters that few need stay closed, however few values they have.
export const TECHNICAL = new Set(["label", "target", "unknown", "names", "order", "assignment", "response_a", "response_b", "repeat", "example_id", "question", "identity_a", "identity_b"]);

export function facetName(name) { return NAMES[name] || name.replace(/_[ab]$/, (side) => side.toUpperCase()).replaceAll("_", " "); }

export function facetValue(name, value) {
  if (value === "") return UNLABELLED.has(name) ? "no label" : "(none)";
  if (WORDS[name]?.[value]) return WORDS[name][value];
  if (value === "true" || value === "false") return value === "true" ? "yes" : "no";
  if (!/^-?\d+$/.test(value)) return value;
  if (OPTIONS.has(name)) return Number(value) < 0 ? "none" : `option ${Number(value) + 1}`;
  if (/^response_[ab]$/.test(name)) return `text ${value}`;
  if (name === "order" && value.length === 3) return `options ${[...value].map((digit) => Number(digit) + 1).join(" ")}`;
  return name === "repeat" ? `${Number(value) + 1} of the same` : value;
}
