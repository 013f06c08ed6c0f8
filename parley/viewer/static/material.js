// What a unit is about, without the instructions: the situation and the answers, a question with its options, drafts.
import { h, orNone } from "./dom.js";
import { markDifferences, markLegend, sideBySide } from "./diff.js";
import { folded } from "./widgets.js";

const LEADS = [["scenario", "Situation"], ["topic", "Topic"], ["prompt", "Beginning of the sentence"], ["context", "Context"], ["question", "Question"]];

// A text between fences, as a model sees it, without the marks.
function withoutFence(text) {
  const fenced = /^<<<([0-9a-f]+) [^\n]*\n([^]*?)\n?\1>>>$/.exec(text.trim());
  return fenced ? fenced[2].split("\n").map((line) => line.replace(/^> ?/, "")).join("\n") : text;
}

function part(title, content, props = {}) { return h("section", { class: "part", ...props }, h("h2", {}, title), h("div", { class: "prose", dir: "auto" }, content)); }

// In the prompt of a rubric, the context comes after the metrics, with nothing between them but its heading.
function leadsOf(fields) {
  if (fields.text !== undefined && fields.metrics !== undefined) {
    const context = (fields.context || "").split("Context:\n")[1];
    return [...(context ? [["Context", context]] : []), ["Text", withoutFence(fields.text)]];
  }
  return LEADS.filter(([name]) => (fields[name] || "").trim()).map(([name, title]) => [title, fields[name]]);
}

// A ballot's prompt by its headings. A label may be a paragraph of its own, so its template alone does not tell the parts.
function ballotFields({ fields, messages }) {
  if (fields.situation === undefined) return fields;
  const paragraphs = messages.find(({ role }) => role === "narrator").text.split("\n\n");
  const headed = (heading) => paragraphs.findIndex((text, nth) => nth > 0 && text.includes(heading));
  const [a, b, single] = ["Answer A", "Answer B", "Answer"].map(headed);
  if (paragraphs.length > 1 && paragraphs.at(-1).includes("{")) paragraphs.pop(); // the format of the reply comes after the question
  const question = paragraphs.length - 1;
  const between = (from, to, heading = "") => paragraphs.slice(from, to).join("\n\n").split("\n").filter((line) => line !== `${heading}:`).join("\n");
  const known = { scenario: between(0, Math.max(1, single), "Situation"), asked: between(single < 0 ? 1 : question) };
  if (0 < a && a < b && b < question) return { ...known, response_a: between(a, b, "Answer A"), response_b: between(b, question, "Answer B") };
  return 0 < single && single < question ? { ...known, response: between(single, question, "Answer") } : known;
}

export function materialView(unit) {
  const { facets } = unit;
  const fields = ballotFields(unit);
  const parts = leadsOf(fields).map(([title, text]) => part(title, text.trim()));
  const options = optionsOf(unit);
  if (options) parts.push(options);
  if (fields.response_a && fields.response_b) {
    const [a, b] = [withoutFence(fields.response_a), withoutFence(fields.response_b)];
    const name = (side) => [`Answer ${side}`, orNone(facets[`identity_${side.toLowerCase()}`] ?? "no label"), facets[`response_${side.toLowerCase()}`] && `text ${facets[`response_${side.toLowerCase()}`]}`].filter(Boolean).join(" · ");
    parts.push(h("div", { class: "sides" }, part(name("A"), markDifferences(a, b, "A"), { "data-side": "A" }), part(name("B"), markDifferences(a, b, "B"), { "data-side": "B" })),
      markLegend(a, b, "in one answer"));
  } else if (fields.response) parts.push(part(["Answer", facets.identity].filter(Boolean).join(" · "), withoutFence(fields.response)));
  if (fields.asked) parts.push(part("Question", fields.asked));
  return parts.length ? h("section", { class: "material", "aria-label": "What was judged" }, parts) : "";
}

// The options of a question in the order shown, with what each is and which was chosen.
function optionsOf({ fields, facets, verdicts }) {
  const shown = ["a", "b", "c"].map((name, n) => fields[name] ?? fields[`ans${n}`]);
  if (shown.some((text) => text === undefined) || facets.label === undefined) return null;
  const order = facets.order || "012";
  const answer = verdicts.filter(({ metric }) => metric === "answer").at(-1);
  const kinds = [["label", "right"], ["target", "stereotyped"], ["unknown", "unknown"]];
  return h("section", { class: "part" }, h("h2", {}, "Options"), h("ul", { class: "options" }, shown.map((text, n) => {
    const published = order[n] ?? String(n);
    const chosen = answer && answer.value !== null && String(answer.value) === published;
    return h("li", { class: chosen ? "chosen" : "" }, h("span", { class: "mark", "aria-hidden": "true" }, chosen ? "●" : "○"), h("span", {}, h("bdi", {}, text.trim()), chosen ? h("span", { class: "pill" }, "chosen") : "",
      kinds.filter(([facet]) => facets[facet] === published).map(([, kind]) => h("span", { class: `pill ${kind}` }, kind))));
  })), answer && answer.value === null ? h("p", { class: "muted" }, `The answer could not be read: ${answer.status}.`) : "");
}

// The drafts of a critique loop: the first next to the accepted one, and each revision next to its draft, folded.
export function draftComparisons(unit) {
  const drafts = unit.messages.filter((message) => message.role === "generator");
  const accepted = unit.verdicts.filter((verdict) => verdict.metric === "accepted" && verdict.value === 1).at(-1);
  const last = accepted && drafts.find((message) => message.round === accepted.round);
  const parts = [];
  if (last && drafts.length > 2) parts.push(comparison("Before and after: the first draft and the accepted one", drafts[0].text, last.text, ["Before", `After (iteration ${last.round})`]));
  drafts.slice(1).forEach((draft, n) => {
    const previous = drafts[n];
    parts.push(comparison(`What changed from iteration ${previous.round} to ${draft.round}`, previous.text, draft.text, [`Iteration ${previous.round}`, `Iteration ${draft.round}`]));
  });
  return parts;
}

function comparison(title, before, after, names) { return folded(title, () => sideBySide(before, after, names), { class: "compare" }); }
