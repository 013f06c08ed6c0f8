// All runs of the folder.
import { get } from "./api.js";
import { progress } from "./charts.js";
import { bytes, day, fill, h, link, money, number, plural, share, signed, whole } from "./dom.js";
import { crumbs, heading, shortcuts, trouble, waiting } from "./widgets.js";

export function runsPage(main) {
  crumbs();
  heading("Runs");
  const list = h("div", { class: "cards" }, waiting());
  const title = h("h1", {}, "Runs");
  const find = h("input", { type: "search", placeholder: "Find a run…", "aria-label": "Find a run by name, study or model", oninput: () => narrow() });
  fill(main, h("div", { class: "page" }, h("div", { class: "row spread" }, title, find), list));
  const cards = new Map();
  let stopped = false;
  let at = -1;

  function narrow() {
    const wanted = find.value.toLowerCase();
    for (const card of cards.values()) card.node.hidden = !card.node.textContent.toLowerCase().includes(wanted);
  }

  async function refresh() {
    try {
      const { place, runs } = await get("runs");
      title.textContent = `Runs in ${place}`;
      const names = runs.map((run) => run.name);
      for (const name of [...cards.keys()]) if (!names.includes(name)) { cards.get(name).node.remove(); cards.delete(name); }
      if (!names.length) return fill(list, h("p", { class: "muted" }, "There is no run here yet. ", h("code", {}, "parley run malibu --suite quick"), " makes one; it appears here while it runs."));
      for (const name of names) if (!cards.has(name)) cards.set(name, { node: h("article", { class: "card", "data-run": name }, h("h2", {}, name), waiting()), state: null });
      fill(list, ...names.map((name) => cards.get(name).node));
      for (const name of names) if (cards.get(name).state !== "finished") await showCard(name);
      narrow();
    } catch (error) { fill(list, trouble(error)); }
  }

  async function showCard(name) {
    if (stopped) return;
    const card = cards.get(name);
    let run;
    try { run = await get("run", { run: name }); } catch (error) { run = { name, broken: error.message }; }
    const key = JSON.stringify(run);
    if (card.key === key) return;
    Object.assign(card, { key, state: run.broken ? "broken" : run.state });
    if (run.broken) {
      card.node.className = "card broken";
      fill(card.node, h("h2", {}, name, h("span", { class: "pill bad" }, "broken")), h("p", {}, run.broken), h("p", { class: "muted" }, `${bytes(run.size || 0)} · ${day(run.changed)}`));
      return;
    }
    const head = h("p", { class: "headline" }, card.line || "…");
    fill(card.node, 
      h("h2", {}, link("/run", { run: name }, {}, name), h("span", { class: `pill ${run.state}` }, run.state)),
      h("p", { class: "facts" }, h("strong", {}, run.study), run.suite ? ` · ${run.suite}` : "", " · ", h("bdi", {}, run.models.join(", "))),
      progress(run.units),
      head,
      h("p", { class: "muted" }, [plural(run.units.done, "unit"), run.units.planned ? `${whole(run.units.planned)} to come` : null,
        run.units.failed ? `${whole(run.units.failed)} failed` : null, plural(run.calls, "call"), money(run.cost), day(run.started)].filter(Boolean).join(" · ")),
      run.errors.length ? h("p", { class: "error" }, `${run.errors[0].units} × ${run.errors[0].error}`) : "");
    get("headline", { run: name }).then((found) => { card.line = inShort(found); fill(head, card.line); narrow(); })
      .catch((error) => fill(head, error.message));
  }

  function move(step) {
    const shown = [...list.querySelectorAll(".card:not([hidden]) h2 a")];
    if (!shown.length) return;
    at = Math.max(0, Math.min(shown.length - 1, at + step));
    shown[at].focus();
  }
  shortcuts({ "/": { what: "find a run", run: () => find.focus() }, j: { what: "next run", run: () => move(1) }, k: { what: "previous run", run: () => move(-1) } });
  const beat = async () => { if (stopped) return; if (!document.hidden) await refresh(); setTimeout(beat, 2000); };
  beat();
  return { stop: () => { stopped = true; } };
}

export function inShort(found) {
  const short = found.in_short;
  if (!short) return h("span", { class: "muted" }, found.why_none || "no headline figure");
  const form = short.unit === "share" ? share : signed;
  const range = short.low === null ? "no interval" : `${form(short.low)} to ${form(short.high)}`;
  const corrected = short.p_holm === null || short.p_holm === undefined ? "" : `, p ${short.p_holm < 0.001 ? "< 0.001" : "= " + number(short.p_holm, 3)} after Holm`;
  return h("span", { title: "the largest of all, so look at the others too" }, h("bdi", {}, short.what), " ", h("b", {}, form(short.estimate)), ` (${range}${corrected}; largest of ${short.of})`);
}
