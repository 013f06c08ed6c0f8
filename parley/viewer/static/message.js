// One message: who, what, what was read from it, what it took, the exact prompt, and notes.
import { get, post } from "./api.js";
import { badge } from "./charts.js";
import { embedded, fill, h, money, number, plural, whole } from "./dom.js";
import { emphasised } from "./run.js";
import { button, copy, permalink, trouble, waiting } from "./widgets.js";

const LONG = 20000;

// The words of a reply: the longer texts in what was read from it, or else the reply as it is.
export function wordsOf(message) {
  const parts = [];
  const collect = (value, key) => {
    if (typeof value === "string" && value.length > 12) parts.push([key, value]);
    else if (value && typeof value === "object" && !Array.isArray(value)) for (const [name, inner] of Object.entries(value)) collect(inner, name);
  };
  collect(message.parsed, "");
  return parts;
}

export function longText(text, query, props = {}) {
  const box = h("div", { class: "prose", dir: "auto", ...props });
  const shown = text.slice(0, LONG);
  box.append(...emphasised(shown, query));
  if (text.length > LONG) {
    let at = LONG;
    const more = button("", () => { const next = text.slice(at, at + 200000); at += next.length; more.before(next); label(); }, { class: "plain more" });
    const label = () => (at >= text.length ? more.remove() : (more.textContent = `… ${whole(text.length - at)} more characters`));
    label();
    box.append(more);
  }
  return box;
}

export function messageView(unit, message, { run, params, index, notes, changed }) {
  const narrator = message.role === "narrator";
  const words = wordsOf(message);
  const query = params.get("q");
  const raw = longText(message.text, query, { class: looksLikeJson(message.text) ? "prose raw" : "prose" });
  let body = raw;
  if (words.length && looksLikeJson(message.text)) {
    const prose = h("div", {}, words.map(([, text]) => longText(text, query)));
    raw.hidden = true;
    const flip = button("raw reply", () => { raw.hidden = !raw.hidden; flip.setAttribute("aria-expanded", String(!raw.hidden)); }, { class: "plain small", "aria-expanded": "false" });
    body = h("div", {}, prose, flip, raw);
  }
  if (narrator && message.text.length > 700) body = h("details", { class: "opening" }, h("summary", {}, h("span", { dir: "auto" }, message.text.slice(0, 180).trim() + "…")), raw);
  const link_params = new URLSearchParams({ run, unit: unit.id });
  const spot = `m${message.seq}`;
  const head = h("header", {},
    narrator ? h("span", { class: "who" }, message.speaker === "user" ? "To the table" : h("bdi", {}, message.speaker)) : h("span", { class: "who" }, badge(index), h("bdi", {}, message.speaker)),
    message.role !== "debater" && !narrator ? h("span", { class: "pill" }, message.role) : "",
    status(message.parse_status),
    h("span", { class: "grow" }),
    h("a", { class: "spot", href: permalink("/unit", link_params, spot), title: "link to this message", "aria-label": `link to message ${message.seq}`, onclick: (event) => { event.preventDefault(); copy(permalink("/unit", link_params, spot), "link"); } }, `#${message.seq}`),
    button("copy", () => copy(message.text, "message"), { class: "plain small" }),
    embedded ? "" : button("note", () => note.open ? (note.open = false) : (note.open = true, note.querySelector("input").focus()), { class: "plain small" }));
  const note = embedded ? h("span") : noteForm(run, unit.id, message.seq, changed);
  return h("article", { class: `message ${narrator ? "narrator" : "voice"} role-${message.role}`, id: spot, tabindex: "-1", vars: { "--voice": narrator ? "var(--line)" : `var(--voice-${index % 6})` } },
    head,
    h("div", { class: "beside" }, h("div", { class: "reply" }, message.persona ? h("details", { class: "persona" }, h("summary", {}, "persona"), h("p", { dir: "auto" }, message.persona)) : "", body),
      message.parsed || message.expected ? h("div", { class: "parsed", "aria-label": "what was read from the reply" }, parsed(message.parsed), expectations(message.expected)) : ""),
    noteList(run, notes, changed), note,
    message.calls.map((call) => callView(run, call)));
}

function looksLikeJson(text) { return /^\s*[[{]/.test(text.slice(0, 50)); }

function status(value) {
  if (!value || value === "ok") return "";
  return h("span", { class: `pill ${value === "repaired" ? "warn" : "bad"}` }, value);
}

// What was read, as a small table; deeper things as JSON.
export function parsed(value) {
  if (!value || typeof value !== "object") return "";
  const sides = Object.entries(value).filter(([, inner]) => inner && typeof inner === "object" && !Array.isArray(inner));
  const same = sides.length > 1 && sides.every(([, inner]) => Object.keys(inner).join() === Object.keys(sides[0][1]).join());
  const plain = Object.entries(value).filter(([, inner]) => typeof inner === "number" || typeof inner === "boolean" || (typeof inner === "string" && inner.length <= 12));
  const rest = Object.entries(value).filter(([key, inner]) => !plain.some(([other]) => other === key) && typeof inner !== "string" && !(same && sides.some(([side]) => side === key)));
  return [
    same ? h("table", { class: "scores" }, h("thead", {}, h("tr", {}, h("th", {}), sides.map(([side]) => h("th", { scope: "col" }, side)))),
      h("tbody", {}, Object.keys(sides[0][1]).map((key) => h("tr", {}, h("th", { scope: "row" }, key), sides.map(([, inner]) => h("td", {}, cell(inner[key]))))))) : "",
    plain.length ? h("table", { class: "scores" }, h("tbody", {}, plain.map(([key, inner]) => h("tr", { class: key === "preferred" ? "preferred" : "" }, h("th", { scope: "row" }, key), h("td", {}, cell(inner)))))) : "",
    rest.map(([key, inner]) => h("div", {}, h("h5", {}, key), Array.isArray(inner) ? evidence(inner) : h("pre", { dir: "auto" }, JSON.stringify(inner, null, 1)))),
  ];
}

// Lists (queries, search results, sources) as lists; addresses stay text: the page asks nobody outside for anything.
function evidence(items) {
  return h("ul", { class: "evidence" }, items.map((item) => h("li", { dir: "auto" }, item && typeof item === "object"
    ? Object.entries(item).map(([key, value]) => h("div", {}, h("b", {}, key), " ", typeof value === "string" ? value : JSON.stringify(value))) : String(item))));
}

function cell(value) { return typeof value === "number" ? number(value, Number.isInteger(value) ? 0 : 2) : String(value ?? "–"); }

function expectations(expected) {
  return expected ? h("table", { class: "scores" }, h("caption", {}, "expected"), h("tbody", {}, Object.entries(expected).map(([path, value]) => h("tr", {}, h("th", { scope: "row" }, path), h("td", {}, number(value)))))) : "";
}

function callView(run, call) {
  const facts = [call.model, `${whole(call.prompt_tokens)} + ${whole(call.completion_tokens)} tokens`, call.cached_tokens && !call.cached ? `${whole(call.cached_tokens)} in the server's cache` : null, `${number(call.latency)} s`, call.cost === null ? "cost unknown" : call.cost ? money(call.cost) : null, call.attempts > 1 ? plural(call.attempts, "attempt") : null].filter(Boolean).join(" · ");
  const box = h("div", { class: "prompt" });
  let filled = false;
  const open = async (event) => {
    if (!event.target.open || filled) return;
    filled = true;
    fill(box, waiting());
    try {
      const texts = await get("texts", { run, ids: call.prompt.map(([, , id]) => id).join(",") });
      fill(box, ...call.prompt.map(([role, source, id]) => h("div", { class: "piece" }, h("b", {}, role, source && source !== role ? ` · ${source}` : ""), longText(texts[id] ?? "(this text is missing from the run)", ""))));
    } catch (error) { filled = false; fill(box, trouble(error)); }
  };
  return h("details", { class: "call", ontoggle: open }, h("summary", {}, h("span", {}, "exact prompt"), h("span", { class: "muted" }, facts), call.cached ? h("span", { class: "pill" }, "cached") : ""), box);
}

export function noteList(run, notes, changed) {
  return notes.length ? h("ul", { class: "notes" }, notes.map((one) => h("li", {}, one.tag ? h("span", { class: "pill tag" }, one.tag) : "", h("span", { dir: "auto" }, one.comment), h("span", { class: "muted" }, one.author ? ` — ${one.author}` : ""),
    embedded ? "" : button("withdraw", async () => { await post("notes/withdraw", { run }, { id: one.id }); changed(); }, { class: "plain small" })))) : "";
}

export function noteForm(run, unit, seq, changed) {
  const tag = h("input", { placeholder: "tag", "aria-label": "tag", maxlength: 60, class: "narrow-text" });
  const comment = h("textarea", { placeholder: "comment", "aria-label": "comment", rows: 2 });
  const author = h("input", { placeholder: "your name", "aria-label": "your name", maxlength: 80, class: "narrow-text", value: remembered() });
  const wrong = h("div", {});
  const send = async (event) => {
    event.preventDefault();
    try {
      try { localStorage.setItem("parley-name", author.value); } catch { /* a private window forgets */ }
      await post("notes", { run }, { unit, seq, tag: tag.value, comment: comment.value, author: author.value });
      changed();
    } catch (error) { fill(wrong, trouble(error)); }
  };
  return h("details", { class: "note-form" }, h("summary", {}, seq === null ? "Add a note" : "Note on this message"), h("form", { onsubmit: send }, h("div", { class: "row" }, tag, author), comment, h("button", {}, "Keep"), wrong));
}

export function remembered() { try { return localStorage.getItem("parley-name") || ""; } catch { return ""; } }
