// One message: speaker, text, what was parsed, the calls with their exact prompts, and notes.
import { get, post } from "./api.js";
import { badge, distribution } from "./charts.js";
import { echoInWords, hasJson, saidTexts } from "./echo.js";
import { embedded, fill, h, integer, money, number, percent, plural, remember, remembered, unique } from "./dom.js";
import { button, copy, errorBox, folded, highlight, loading, permalink } from "./widgets.js";

const CHARACTERS_SHOWN = 20000; // of a long text at first
const CHARACTERS_ADDED = 200000; // with every click
const LONG_TASK = 700; // characters; longer tasks and instructions are folded

function longText(text, query, props = {}, echoes = []) {
  const box = h("div", { class: "prose", dir: "auto", ...props });
  box.append(...(query || !echoes.length ? highlight(text.slice(0, CHARACTERS_SHOWN), query) : markEchoes(text.slice(0, CHARACTERS_SHOWN), echoes)));
  if (text.length > CHARACTERS_SHOWN) {
    let end = CHARACTERS_SHOWN;
    const more = button("", () => { more.before(text.slice(end, end + CHARACTERS_ADDED)); end = Math.min(text.length, end + CHARACTERS_ADDED); showRest(); }, { class: "plain more" });
    const showRest = () => (end >= text.length ? more.remove() : (more.textContent = `… ${plural(text.length - end, "more character")}`));
    showRest();
    box.append(more);
  }
  return box;
}

// The text in pieces, with the words marked that another judge had said before.
function markEchoes(text, echoes) {
  const pieces = [];
  let end = 0;
  for (const [from, to, name] of echoes) {
    pieces.push(text.slice(end, from), h("mark", { class: "echo", title: `said before by ${name}` }, text.slice(from, to)));
    end = to;
  }
  return [...pieces, text.slice(end)];
}

// A reply from another conversation, which the judges of this one were told about: not a prompt, though it is stored as one.
export function isHeard({ role, calls, text }) { return role === "narrator" && text !== "" && calls.length > 0; }

export function roundName(message) { return message.round ? `round ${message.round}` : message.expected ? "silent ballot" : isHeard(message) ? "heard" : ""; }

function parsedJson(text) { try { return JSON.parse(text); } catch { return null; } }

export function isLongTask(message) { return message.role === "narrator" && message.text.length > LONG_TASK; }

export function speakerName(message, index) {
  const name = message.role === "narrator" && message.speaker === "user" ? "Prompt" : h("bdi", {}, message.speaker);
  return h("span", { class: "who" }, message.role === "narrator" ? "" : badge(index), name);
}

// The verdicts of others on what was said: a referee's scores, and what rules found in it.
function verdictsAbout({ verdicts = [] }, { speaker, round, role }) {
  const own = verdicts.filter((verdict) => verdict.subject === speaker && verdict.round === round && verdict.judge !== speaker && (verdict.role === "coordinator" ? verdict.value : verdict.value !== null));
  return own.length && role !== "narrator" ? h("table", { class: "scores about" }, h("caption", {}, "scored by others"), h("tbody", {}, own.map(({ judge, metric, value }) => h("tr", {}, h("th", { scope: "row" }, `${judge}: ${metric}`), h("td", {}, cell(value)))))) : "";
}

export function speakerColour(message, index) { return { "--speaker": message.role === "narrator" ? "var(--line)" : `var(--speaker-${index % 6})` }; }

// What was said as words: the prose of a parsed reply, with its JSON folded, or the text.
export function saidView(message, query = "", echo = null) {
  if (message.expected) return h("div", { class: "ballot", role: "group", "aria-label": "parsed reply" }, ballotView(message.expected));
  const texts = saidTexts(message).map((text, nth) => longText(text, query, {}, echo?.ranges[nth] || []));
  if (!hasJson(message.text)) return h("div", {}, texts);
  const raw = () => longText(message.text, query, { class: "prose raw" });
  if (!message.parsed) return raw();
  return h("div", {}, texts, texts.length ? "" : h("div", { class: "parsed alone" }, parsedReply(message.parsed)), folded("JSON", raw));
}

// Instructions are folded: the first line is enough to know which. The same ones again are only named.
function instructionView({ text }, query, again, alike) {
  if (again !== undefined) return h("p", { class: "muted" }, `the same instructions as #${again}`);
  const details = h("details", { class: "task" }, h("summary", {}, h("span", { dir: "auto" }, text.length <= 110 ? text : alike ? `…${text.slice(-110)}` : `${text.slice(0, 110).trim()}…`)), longText(text, query));
  if (query) details.open = true;
  return details;
}

export function messageView(unit, stored, { run, params, index, notes, changed, echo = null, again = undefined, alike = false, folded = false }) {
  const message = isHeard(stored) ? { ...stored, role: "heard", parsed: parsedJson(stored.text) } : stored;
  const narrator = message.role === "narrator";
  const query = params.get("q");
  const body = narrator && (folded || again !== undefined || isLongTask(message)) ? instructionView(message, query, again, alike) : saidView(message, query, echo);
  const anchor = `m${message.seq}`;
  const url = permalink("/unit", { run, unit: unit.id }, anchor);
  const form = embedded ? h("span") : noteForm(run, unit.id, message.seq, changed);
  const head = h("header", {},
    speakerName(message, index),
    message.role !== "debater" && !narrator ? h("span", { class: "pill" }, message.role) : "",
    parseStatus(message.parse_status),
    echo ? echoInWords(echo).map((words) => h("span", { class: "pill echo" }, words)) : "",
    message.cut && message.parse_status !== "cut" ? h("span", { class: "pill warn", title: "the reply reached its token limit" }, "cut") : "",
    message.flags?.length ? h("span", { class: "pill warn", title: `${message.flags.join(", ")}; no judge sees this mark` }, "reads like an instruction") : "",
    h("span", { class: "grow" }),
    h("a", { class: "anchor", href: url, title: "copy a link to this message", "aria-label": `link to message ${message.seq}`, onclick: (event) => { event.preventDefault(); copy(url, "link"); } }, `#${message.seq}`),
    button("copy", () => copy(message.text, "message"), { class: "plain small" }),
    embedded ? "" : button("note", () => form.open ? (form.open = false) : (form.open = true, form.querySelector("input").focus()), { class: "plain small" }));
  return h("article", { class: `message ${narrator ? "narrator" : "agent"} role-${message.role}`, id: anchor, tabindex: "-1", vars: speakerColour(message, index) },
    head,
    h("div", { class: "beside" }, h("div", { class: "reply" }, thoughtView(message.thought), body),
      parsedAside(message), verdictsAbout(unit, message)),
    noteList(run, notes, changed), form,
    message.calls.map((call) => callView(run, call)));
}

// What the model thought before it spoke: folded, and put into the page only when it is opened.
function thoughtView(thought) { return thought ? folded(`thought · ${plural(thought.length, "character")}`, () => longText(thought, "")) : ""; }

function parseStatus(status) {
  if (!status || status === "ok") return "";
  return h("span", { class: `pill ${["repaired", "copied", "empty"].includes(status) ? "warn" : "bad"}` }, status);
}

// What was parsed from a reply, next to its words; a reply without words is shown as what was parsed.
export function parsedAside(message) {
  if (message.expected) return "";
  const alone = message.parsed && hasJson(message.text) && !saidTexts(message).length;
  const parts = [alone ? [] : parsedReply(message.parsed, message.text)].flat(Infinity).filter(Boolean);
  return parts.length ? h("div", { class: "parsed", role: "group", "aria-label": "parsed reply" }, parts) : "";
}

// A parsed reply as small tables; nested values as JSON. Lists that are in the text anyway are left out.
export function parsedReply(value, text = "") {
  if (!value || typeof value !== "object") return "";
  const entries = Object.entries(value);
  const sides = entries.filter(([, inner]) => inner && typeof inner === "object" && !Array.isArray(inner));
  const sameKeys = sides.length > 1 && sides.every(([, inner]) => Object.keys(inner).join() === Object.keys(sides[0][1]).join());
  const simple = entries.filter(([, inner]) => typeof inner === "number" || typeof inner === "boolean" || (typeof inner === "string" && inner.length <= 12));
  const inText = (inner) => Array.isArray(inner) && inner.length > 0 && inner.every((item) => typeof item === "string" && text.includes(item));
  const rest = entries.filter(([key, inner]) => inner !== null && !inText(inner) && !simple.some(([other]) => other === key) && typeof inner !== "string" && !(sameKeys && sides.some(([side]) => side === key)));
  return [
    sameKeys ? h("table", { class: "scores" }, h("thead", {}, h("tr", {}, h("td", {}), sides.map(([side]) => h("th", { scope: "col" }, side)))),
      h("tbody", {}, Object.keys(sides[0][1]).map((key) => h("tr", {}, h("th", { scope: "row" }, key), sides.map(([, inner]) => h("td", {}, cell(inner[key]))))))) : "",
    simple.length ? h("table", { class: "scores" }, h("tbody", {}, simple.map(([key, inner]) => h("tr", { class: key === "preferred" ? "preferred" : "" }, h("th", { scope: "row" }, key), h("td", {}, cell(inner)))))) : "",
    rest.map(([key, inner]) => h("div", {}, h("h5", {}, key), Array.isArray(inner) ? evidenceList(inner) : h("pre", { dir: "auto" }, JSON.stringify(inner, null, 1)))),
  ];
}

// Queries, search results and sources. Web addresses stay plain text: the page never loads anything from outside.
function evidenceList(items) {
  return h("ul", { class: "evidence" }, items.map((item) => h("li", { dir: "auto" }, item && typeof item === "object"
    ? Object.entries(item).map(([key, value]) => h("div", {}, h("b", {}, key), " ", typeof value === "string" ? value : JSON.stringify(value))) : String(item))));
}

function cell(value) { return typeof value === "number" ? number(value, Number.isInteger(value) ? 0 : 2) : String(value ?? "–"); }

// A silent ballot: the number that counts and what it means, then the probability of each option ("preferred=A" is A).
function ballotView(expected) {
  const metrics = unique(Object.keys(expected).filter((path) => path.includes("=")).map((path) => path.split("=")[0]));
  if (metrics.length !== 1) return h("table", { class: "scores" }, h("caption", {}, "expected scores"), h("tbody", {}, Object.entries(expected).map(([path, value]) => h("tr", {}, h("th", { scope: "row" }, path.replace("=", " ")), h("td", {}, path.includes("=") || path.endsWith(" on scale") ? percent(value) : number(value))))));
  const [metric] = metrics;
  const [score, odds, read] = [metric, `${metric} log-odds`, `${metric} on scale`].map((path) => expected[path]);
  return [h("p", { class: "muted" }, score === undefined ? "Probability of each choice" : ["Expected ", h("bdi", {}, metric), " ", h("b", {}, number(score)), ", the mean of these options by their probabilities"],
    odds === undefined ? "" : `, log-odds ${number(odds)}`, read === undefined || read > 0.995 ? "" : `; ${percent(read)} of the probability is on the scale`, "."), distribution(expected)];
}

function callView(run, call) {
  const facts = [call.model, `${integer(call.prompt_tokens)} + ${integer(call.completion_tokens)} tokens`, call.thought_tokens ? `${integer(call.thought_tokens)} of them thinking` : null, call.cached_tokens && !call.cached ? `${integer(call.cached_tokens)} from the prompt cache` : null, `${number(call.latency)} s`, call.cost === null ? "cost unknown" : call.cost ? money(call.cost) : null, call.attempts > 1 ? plural(call.attempts, "attempt") : null].filter(Boolean).join(" · ");
  const box = h("div", { class: "prompt" });
  let filled = false;
  const open = async (event) => {
    if (!event.target.open || filled) return;
    filled = true;
    fill(box, loading());
    try {
      const texts = await get("texts", { run, ids: call.prompt.map(([, , id]) => id).join(",") });
      fill(box, ...call.prompt.map(([role, source, id]) => h("div", { class: "piece" }, h("b", {}, role, source && source !== role ? ` · ${source}` : ""), longText(texts[id] ?? "(this text is missing from the run file)", ""))));
    } catch (error) { filled = false; fill(box, errorBox(error)); }
  };
  return h("details", { class: "call", ontoggle: open }, h("summary", {}, h("span", {}, "exact prompt"), h("span", { class: "muted" }, facts), call.cached ? h("span", { class: "pill" }, "from the reply cache") : ""), box);
}

export function noteList(run, notes, changed) {
  return notes.length ? h("ul", { class: "notes" }, notes.map((note) => h("li", {}, note.tag ? h("span", { class: "pill tag" }, note.tag) : "", h("span", { dir: "auto" }, note.comment), h("span", { class: "muted" }, note.author ? ` — ${note.author}` : ""),
    embedded ? "" : button("withdraw", async () => { await post("notes/withdraw", { run }, { id: note.id }); changed(); }, { class: "plain small" })))) : "";
}

export function noteForm(run, unit, seq, changed) {
  const tag = h("input", { placeholder: "tag", "aria-label": "tag", maxlength: 60, class: "narrow-text" });
  const comment = h("textarea", { placeholder: "comment", "aria-label": "comment", rows: 2 });
  const author = h("input", { placeholder: "your name", "aria-label": "your name", maxlength: 80, class: "narrow-text", value: remembered("name") });
  const problem = h("div", {});
  const save = async (event) => {
    event.preventDefault();
    try {
      remember("name", author.value);
      await post("notes", { run }, { unit, seq, tag: tag.value, comment: comment.value, author: author.value });
      changed();
    } catch (error) { fill(problem, errorBox(error)); }
  };
  return h("details", { class: "note-form" }, h("summary", {}, seq === null ? "Add a note" : "Note on this message"), h("form", { onsubmit: save }, h("div", { class: "row" }, tag, author), comment, h("button", {}, "Save"), problem));
}
