// Facets as people read them, as the run's study declares them: titles, names of filters and columns, values in words.

const CLOSED = new Set(["answer", "order", "count", "technical"]);

// What words of ours mean, as in docs/concepts.md.
export const GLOSSARY = {
  base: "An area of life, e.g. law or fitness, with the stereotype it probes; scenarios are derived from it. MALIBU's cluster.",
  panel: "The judges of a unit together: its score is the mean of theirs, its choice the majority's, or the chair's if there is one.",
  identity: "The label that a prompt puts on the author of an answer, e.g. female or muslim. The answer stays the same.",
  wording: "How a prompt names the author (label wording: a byline, a profile), or asks (question wording).",
  control: "A unit in which nothing is varied, or a harmless text in place of an attempt: what you see if nothing is changed.",
};

// Those of them that occur in some texts, as [word, meaning] pairs, unless a text itself says what "a base is".
export function wordsOf(texts) {
  const all = texts.join(" ");
  return Object.entries(GLOSSARY).filter(([word]) => new RegExp(`\\b${word}s?\\b`, "i").test(all) && !new RegExp(`\\ban? ${word} is\\b`, "i").test(all));
}

let declared = new Map();
export function knowFacets(summary) { declared = new Map((summary.facets || []).map((facet) => [facet.name, facet])); }

const NONE = { kind: "", title: "", silent: "", label: "", words: {} };
const facetOf = (name) => declared.get(name) || NONE;

export function facetName(name) {
  const { kind, label } = facetOf(name);
  return label ? label + (kind === "answer" ? " answer" : "") : name.replace(/_[ab]$/, (side) => side.toUpperCase()).replaceAll("_", " ");
}

// The names of the facets of a kind, in the order of titles.
export function facetsOf(...kinds) { return [...declared.values()].filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name); }

// Filters that few need stay closed, however few values they have. An identity's finds the others too.
export function isClosed(name) { const { kind } = facetOf(name); return CLOSED.has(kind) || (kind === "identity" && name !== facetsOf("identity")[0]); }

// A list of titles needs no column for what they say.
export function inColumn(name) { const { kind, title } = facetOf(name); return !title && !CLOSED.has(kind) && kind !== "identity" && kind !== "text"; }

export function facetValue(name, value) {
  const { kind, words } = facetOf(name);
  if (Object.hasOwn(words, value)) return words[value];
  if (value === "") return kind === "identity" ? "no label" : "(none)";
  if (value === "true" || value === "false") return value === "true" ? "yes" : "no";
  return kind === "count" ? `no. ${Number(value) + 1}` : value;
}

const inWords = (name) => (/\s/.test(name) ? name : name.replaceAll(/[-_]+/g, " ").trim());

// What a title says about a facet: "order swapped"; nothing if there is nothing to say.
function said({ name, kind, title, silent, words }, facets) {
  const value = facets[name];
  if (!title || value === undefined || (silent && value === silent) || (value === "" && !("" in words))) return "";
  if (!kind && value === facets.identity) return ""; // judges who heard ballots on their own unit's label
  // A pair's title names its two sides.
  if (kind === "identity" && `${name}_a` in facets) return "";
  const shown = kind === "count" ? String(Number(value) + 1) : kind === "text" ? inWords(value) : words[value] ?? value;
  return title.replace(/\{(?::\.(\d+))?\}/, (_, length) => shown.slice(0, length || undefined));
}

// A unit's title in words: "Fitness: desk worker · A female · B male · order swapped".
export function unitTitle(facets, id, only) { const { about, labels } = titleParts(facets, id, only); return [about, labels].filter(Boolean).join(" · "); }

// What a unit is about, and what is varied on it; a unit whose facets do not say what it is about has only the first.
export function titleParts(facets, id, only = [...declared.values()]) {
  const [subject, details] = [[], []];
  let before = "";
  for (const facet of only) {
    // The id of a scenario begins with that of its base.
    const own = facet.kind === "text" && before && facets[facet.name]?.startsWith(`${before}-`) ? { ...facets, [facet.name]: facets[facet.name].slice(before.length + 1) } : facets;
    const words = said(facet, own);
    if (words) (facet.kind === "text" ? subject : details).push(words);
    if (facet.kind === "text" && words) before = facets[facet.name];
  }
  const about = subject.join(": ");
  const parts = about ? details : allFacets(facets);
  if (id.includes("@") && facets.model) parts.push(facets.model.split("?")[0].split("/").at(-1));
  const labels = parts.join(" · ");
  return about ? { about: about.charAt(0).toUpperCase() + about.slice(1), labels } : { about: labels || id, labels: "" };
}

// The title of what a unit is about, up to one of its facets of kind "text", without what is varied on it.
export function subjectTitle(facets, name, id) {
  const texts = facetsOf("text");
  return unitTitle(facets, id, texts.slice(0, texts.indexOf(name) + 1).map(facetOf));
}

// Where no facet says what a unit is about: all of them, if they are few enough to read.
function allFacets(facets) {
  const shown = Object.entries(facets).filter(([name, value]) => value !== "" && !["model", "repeat"].includes(name));
  return shown.length <= 5 ? shown.map(([name, value]) => `${inWords(name)} ${value}`) : [];
}
