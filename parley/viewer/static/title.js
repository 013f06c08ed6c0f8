// A unit's title in words, from its facets: "Fitness: desk worker · A female, B male · order swapped".

// The facets that a title says: a list of titles needs no columns for them.
export const TITLE_FACETS = new Set(["topic", "topic_id", "article", "question_id", "category", "example_id", "question", "scenario", "base", "set", "prompt", "item", "area", "bias", "identity", "other", "identity_a", "identity_b", "response_a", "response_b",
  "order", "assignment", "control", "flaw", "dose", "flawed", "reader", "stage", "condition", "polarity", "variant", "attempt", "kind", "ask", "shown", "judged_by", "mode", "completion", "method", "group", "answerable", "answers", "search", "pair", "repeat", "phase", "label", "target", "unknown", "names"]);

export function unitTitle(facets, id) {
  const subject = titleSubject(facets);
  const parts = subject ? [subject, ...titleDetails(facets)] : otherFacets(facets);
  if (id.includes("@") && facets.model) parts.push(shortModel(facets.model));
  return parts.length ? parts.join(" · ") : id;
}

function inWords(name) { return name.replaceAll(/[-_]+/g, " ").trim(); }
function capital(text) { return text.charAt(0).toUpperCase() + text.slice(1); }
function shortModel(model) { return model.split("?")[0].split("/").at(-1); }

// What the unit is about.
function titleSubject(facets) {
  const { topic, article, category, example_id: example, scenario, base, set, prompt, item, bias, area } = facets;
  if (topic) return topic;
  if (article) return `${inWords(article)}, question ${(facets.question_id || "").slice(0, 6)}`;
  if (category && example) return `${inWords(category)} ${example}`;
  if (scenario && base && scenario.startsWith(`${base}-`)) return `${capital(inWords(base))}: ${inWords(scenario.slice(base.length + 1))}`;
  if (scenario) return capital(inWords(scenario));
  if (set && prompt) return `${capital(set)} toxicity, prompt ${prompt.split("-")[0]}`;
  if (item) return capital(inWords(item));
  if (area) return `${capital(bias || "")}: ${area}`;
  return base ? capital(inWords(base)) : "";
}

// What distinguishes it from other units about the same.
function titleDetails(facets) {
  const label = (identity) => identity || "no label";
  const details = [];
  if (facets.identity_a !== undefined) details.push(`A ${label(facets.identity_a)}, B ${label(facets.identity_b)}`);
  else if (facets.flaw !== undefined) details.push(facets.flaw ? `${inWords(facets.flaw)} flaw, dose ${facets.dose}` : "sound answer", facets.reader && `read by ${facets.reader}`, facets.flawed && `flawed answer is ${facets.flawed}`);
  else if (facets.identity !== undefined) details.push(label(facets.identity));
  if (facets.response_a !== undefined && facets.order === "1") details.push("order swapped");
  if (facets.assignment === "1") details.push("answers exchanged");
  if (facets.stage === "talk") details.push("debate");
  if (facets.control && facets.control !== "no label") details.push(`control: ${facets.control}`);
  if (facets.condition) details.push(facets.condition === "ambig" ? "ambiguous context" : "disambiguated context");
  if (facets.polarity) details.push(facets.polarity === "neg" ? "negative question" : "non-negative question");
  if (facets.variant) details.push({ clean: "no attempt", control: `harmless control of ${facets.attempt}` }[facets.variant] || `${facets.attempt} asks for ${facets.ask}`, facets.shown);
  if (facets.judged_by) details.push(`judged by ${facets.judged_by}`);
  if (facets.topic && facets.bias) details.push(facets.bias);
  if (facets.mode && facets.mode !== "self-reflection") details.push(facets.mode);
  if (facets.completion !== undefined) details.push(`completion ${Number(facets.completion) + 1}`);
  if (facets.method) details.push(facets.method);
  if (facets.group) details.push(facets.group);
  if (facets.answerable === "false") details.push("unanswerable");
  if (facets.search && facets.search !== "none") details.push(`search ${facets.search}`);
  if (Number(facets.pair) > 0) details.push(`pair ${Number(facets.pair) + 1}`);
  if (Number(facets.repeat) > 0) details.push(`repeat ${Number(facets.repeat) + 1}`);
  return details.filter(Boolean);
}

// For a user's own study: its facets, if they are few enough to read.
function otherFacets(facets) {
  const shown = Object.entries(facets).filter(([name, value]) => value !== "" && !["model", "repeat"].includes(name));
  return shown.length && shown.length <= 5 ? shown.map(([name, value]) => `${inWords(name)} ${value}`) : [];
}
