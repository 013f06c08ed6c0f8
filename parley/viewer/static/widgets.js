// What several pages share: titles, cautions, waiting, copying, shortcuts.
import { get } from "./api.js";
import { address, embedded, fill, go, h, link, say } from "./dom.js";

export function crumbs(...parts) {
  const home = embedded ? h("span", { class: "brand" }, "Parley") : link("/", {}, { class: "brand" }, "Parley");
  const pieces = [home, ...parts].flatMap((part, n) => (n ? [h("span", { class: "sep", "aria-hidden": "true" }, "/"), part] : [part]));
  fill(document.getElementById("crumbs"), ...pieces);
}

export function heading(text) { document.title = `${text} · Parley`; }

export function trouble(error) {
  return h("div", { class: "notice bad", role: "alert" }, h("strong", {}, "That did not work. "), String(error.message || error));
}

export function cautions(lines) { return lines.map((line) => h("p", { class: "notice caution" }, h("strong", {}, "Caution. "), line)); }

export function waiting(text = "reading…") { return h("p", { class: "muted waiting" }, text); }

export async function copy(text, what) {
  try { await navigator.clipboard.writeText(text); say(`${what} copied`); }
  catch { say("the browser did not allow copying"); }
}

export function download(name, text, type) {
  const at = URL.createObjectURL(new Blob([text], { type }));
  const anchor = h("a", { href: at, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(at), 1000);
}

export function button(label, onclick, props = {}) { return h("button", { type: "button", onclick, ...props }, label); }

export function permalink(path, params, mark) { return embedded ? location.href.split("#")[0] + address(path, params, mark) : location.origin + address(path, params, mark); }

// Who is speaking to whom: the same judge has the same colour and shape everywhere in a run.
export function voices(names) {
  const order = [...names];
  return (name) => { let at = order.indexOf(name); if (at < 0) at = order.push(name) - 1; return at; };
}

// Keys act unless one is typing.
let keys = {};
export function shortcuts(map) { keys = map; }
export function listenForKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "Escape" && typing) return typing.blur();
    if (typing || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const action = event.key === "?" ? { run: showHelp } : keys[event.key];
    if (action) { event.preventDefault(); action.run(); }
  });
}

export function showHelp() {
  const rows = Object.entries(keys).filter(([, one]) => one.what).map(([key, one]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, one.what)));
  const box = h("dialog", { class: "help", "aria-label": "Keyboard" }, h("h2", {}, "Keyboard"),
    h("table", {}, rows, h("tr", {}, h("td", {}, h("kbd", {}, "?")), h("td", {}, "this help"))), button("Close", () => box.close()));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

// Ask whether anything was written since, while the page is seen; stops when the page is left.
export function follow(run, changed, seconds = 1.5) {
  if (embedded) return () => {};
  let [last, stopped] = [null, false];
  const ask = async () => {
    if (stopped) return;
    if (!document.hidden) {
      try {
        const { stamp, notes } = await get("pulse", { run });
        const now = `${stamp}/${notes}`;
        if (last !== null && now !== last && !stopped) await changed();
        last = now;
      } catch { /* the server is away for a moment: ask again */ }
    }
    setTimeout(ask, seconds * 1000);
  };
  ask();
  return () => { stopped = true; };
}

export function pager(page, size, matching, params) {
  const last = Math.max(0, Math.ceil(matching / size) - 1);
  const to = (number) => () => { const next = new URLSearchParams(params); number ? next.set("page", number) : next.delete("page"); go("/run", next); };
  return h("nav", { class: "pager", "aria-label": "Pages" },
    button("←", to(page - 1), { disabled: page === 0, "aria-label": "previous page" }),
    h("span", {}, matching ? `${(page * size + 1).toLocaleString("en")}–${Math.min((page + 1) * size, matching).toLocaleString("en")} of ${matching.toLocaleString("en")}` : "none"),
    button("→", to(page + 1), { disabled: page >= last, "aria-label": "next page" }));
}
