// Parts that several pages share: breadcrumbs, errors, copying, shortcuts, paging.
import { get } from "./api.js";
import { address, announce, embedded, fill, go, h, integer, link, plural } from "./dom.js";

export const PAGE_SIZE = 50;

export function breadcrumbs(...parts) {
  const home = embedded ? h("span", { class: "brand" }, "Parley") : link("/", {}, { class: "brand" }, "Parley");
  const pieces = [home, ...parts].flatMap((part, index) => (index ? [h("span", { class: "sep", "aria-hidden": "true" }, "/"), part] : [part]));
  fill(document.getElementById("breadcrumbs"), ...pieces);
}

export function setTitle(text) { document.title = `${text} · Parley`; }

export function errorBox(error) {
  return h("div", { class: "notice bad", role: "alert" }, h("strong", {}, "Error: "), String(error.message || error));
}

// In one box, the severest first.
export function cautions(lines) {
  if (!lines.length) return "";
  const many = lines.length > 1;
  return h("div", { class: "notice caution" }, h("strong", {}, many ? `${lines.length} cautions` : "Caution: "), many ? h("ol", {}, lines.map((line) => h("li", {}, line))) : lines[0]);
}

export function loading(text = "loading…") { return h("p", { class: "muted loading" }, text); }

export async function copy(text, what) {
  try { await navigator.clipboard.writeText(text); announce(`${what} copied`); }
  catch { announce("the browser did not allow copying"); }
}

export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function button(label, onclick, props = {}) { return h("button", { type: "button", onclick, ...props }, label); }

// Details whose content is made when they are opened first: a long text, or a comparison of two, takes time.
export function folded(summary, content, props = { class: "folded" }) {
  const open = ({ target }) => { if (target.open && target.children.length === 1) target.append(content()); };
  return h("details", { ...props, ontoggle: open }, h("summary", {}, summary));
}

// A table that scrolls sideways on a narrow screen, also by keyboard.
export function scrollTable(label, heads, rows, props = { class: "table" }) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", props, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)));
}

export function permalink(path, params, anchor) { return embedded ? location.href.split("#")[0] + address(path, params, anchor) : location.origin + address(path, params, anchor); }

// What a study's units are compared by, apart from the choice of a pair.
export function mainMeasure(summary) { return (summary.measures || []).find(({ kind }) => kind !== "choice") || null; }

// A function from a speaker to the number of its colour and shape: the same everywhere in a unit.
export function speakerIndex(names) {
  const order = [...names];
  return (name) => { const index = order.indexOf(name); return index < 0 ? order.push(name) - 1 : index; };
}

// Shortcuts of the page, by key: { what, run }. They are off while the user types.
let keys = {};
export function shortcuts(map) { keys = map; }

// What can be done on this page, for Ctrl-K: its shortcuts, with their keys.
export function pageActions() { return Object.entries(keys).map(([key, { what, run }]) => ({ kind: "action", name: what, detail: key, run })); }
export function listenForKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const input = event.target.closest("input, textarea, select");
    if (event.key === "Escape" && input && !["checkbox", "radio"].includes(input.type)) return input.blur();
    if ((input && !["checkbox", "radio"].includes(input.type)) || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const action = event.key === "?" ? { run: () => showHelp() } : keys[event.key] ?? keys[event.key.toLowerCase()];
    if (action) { event.preventDefault(); action.run(); }
  });
}

// The shortcuts of the page, or of a dialog that has its own.
export function showHelp(own = keys) {
  const rows = Object.entries({ ...own, "Ctrl-K": { what: "go to a page, run or unit, or run a command" }, "?": { what: "this help" } }).map(([key, { what }]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, what)));
  const dialog = h("dialog", { class: "help", "aria-label": "Keyboard shortcuts" }, h("h2", {}, "Keyboard shortcuts"), h("table", {}, rows), button("Close", () => dialog.close()));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// Calls `changed` whenever the run or its notes were written, while the page is visible. Returns a function that stops it.
export function watchRun(run, changed, seconds = 1.5) {
  if (embedded) return () => {};
  let [last, stopped] = [null, false];
  const check = async () => {
    if (stopped) return;
    if (!document.hidden) {
      try {
        const { stamp, notes } = await get("pulse", { run });
        if (!stamp) return stopped || document.getElementById("main").prepend(h("p", { class: "notice bad", role: "alert" }, "The file of this run is gone; the page shows what it had."));
        const now = `${stamp}/${notes}`;
        if (last !== null && now !== last && !stopped) await changed();
        last = now;
      } catch { /* the server did not answer: try again */ }
    }
    setTimeout(check, seconds * 1000);
  };
  check();
  return () => { stopped = true; };
}

// What a page of a run does not show yet; "" where everything is there.
export function unindexed({ indexed, done }) { return indexed < done ? `indexed ${integer(indexed)} of ${plural(done, "unit")}` : ""; }

export function pager(page, matching, path, params) {
  const last = Math.max(0, Math.ceil(matching / PAGE_SIZE) - 1);
  const open = (number) => () => { const next = new URLSearchParams(params); number ? next.set("page", number) : next.delete("page"); go(path, next); };
  return h("nav", { class: "pager", "aria-label": "Pages" },
    button("←", open(page - 1), { disabled: page === 0, "aria-label": "previous page" }),
    h("span", {}, matching ? `${integer(page * PAGE_SIZE + 1)}–${integer(Math.min((page + 1) * PAGE_SIZE, matching))} of ${integer(matching)}` : "none"),
    button("→", open(page + 1), { disabled: page >= last, "aria-label": "next page" }));
}

// The text in pieces, with the words of the search marked.
export function highlight(text, query) {
  const words = ((query || "").match(/-?"[^"]+"|\S+/g) || []).filter((word) => !word.startsWith("-")).map((word) => word.replaceAll('"', "").replace(/\*$/, "")).filter(Boolean);
  if (!words.length) return [text];
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
  return text.split(pattern).map((piece, index) => (index % 2 ? h("mark", {}, piece) : piece));
}
