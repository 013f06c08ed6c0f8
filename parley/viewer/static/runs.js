// All runs of the folder.
import { get } from "./api.js";
import { progress } from "./charts.js";
import { bytes, dateTime, fill, h, integer, link, money, number, percent, plural, signed } from "./dom.js";
import { breadcrumbs, errorBox, loading, setTitle, shortcuts } from "./widgets.js";

export function runsPage(main) {
  breadcrumbs();
  setTitle("Runs");
  const list = h("div", { class: "cards" }, loading());
  const title = h("h1", {}, "Runs");
  const search = h("input", { type: "search", placeholder: "Find a run…", "aria-label": "Find a run by name, study or model", oninput: () => applySearch() });
  fill(main, h("div", { class: "page" }, h("div", { class: "row spread" }, title, search), list));
  const cards = new Map();
  let stopped = false;
  let focused = -1;

  function applySearch() {
    const text = search.value.toLowerCase();
    for (const card of cards.values()) card.node.hidden = !card.node.textContent.toLowerCase().includes(text);
  }

  async function refresh() {
    try {
      const { folder, runs } = await get("runs");
      title.textContent = `Runs in ${folder}/`;
      const names = runs.map((run) => run.name);
      for (const name of [...cards.keys()]) if (!names.includes(name)) { cards.get(name).node.remove(); cards.delete(name); }
      if (!names.length) return fill(list, h("p", { class: "muted" }, "No runs yet. Start one with ", h("code", {}, "parley run malibu --suite quick"), "; it will appear here."));
      for (const name of names) if (!cards.has(name)) cards.set(name, { node: h("article", { class: "card", "data-run": name }, h("h2", {}, name), loading()), state: null });
      fill(list, ...names.map((name) => cards.get(name).node));
      for (const name of names) if (cards.get(name).state !== "finished") await showCard(name);
      applySearch();
    } catch (error) { fill(list, errorBox(error)); }
  }

  async function showCard(name) {
    if (stopped) return;
    const card = cards.get(name);
    let run;
    try { run = await get("run", { run: name }); } catch (error) { run = { name, broken: error.message }; }
    const version = JSON.stringify(run);
    if (card.version === version) return;
    Object.assign(card, { version, state: run.broken ? "broken" : run.state });
    if (run.broken) {
      card.node.className = "card broken";
      fill(card.node, h("h2", {}, name, h("span", { class: "pill bad" }, "broken")), h("p", {}, run.broken), h("p", { class: "muted" }, `${bytes(run.size || 0)} · ${dateTime(run.changed)}`));
      return;
    }
    const headline = h("p", { class: "headline" }, card.headline || "…");
    const { done, planned, failed } = run.units;
    fill(card.node,
      h("h2", {}, link("/run", { run: name }, {}, name), h("span", { class: `pill ${run.state}` }, run.state)),
      h("p", { class: "facts" }, h("strong", {}, run.study), run.suite ? ` · ${run.suite}` : "", " · ", h("bdi", {}, run.models.join(", "))),
      progress(run.units),
      headline,
      h("p", { class: "muted" }, [`${plural(done, "unit")} done`, planned ? `${integer(planned)} planned` : null, failed ? `${integer(failed)} failed` : null,
        plural(run.calls, "call"), money(run.cost), dateTime(run.started)].filter(Boolean).join(" · ")),
      run.errors.length ? h("p", { class: "error" }, `${plural(run.errors[0].units, "unit")}: ${run.errors[0].error}`) : "");
    get("headline", { run: name }).then((figures) => { card.headline = largestFigure(figures); fill(headline, card.headline); applySearch(); })
      .catch((error) => fill(headline, error.message));
  }

  function moveFocus(step) {
    const links = [...list.querySelectorAll(".card:not([hidden]) h2 a")];
    if (!links.length) return;
    focused = Math.max(0, Math.min(links.length - 1, focused + step));
    links[focused].focus();
  }
  shortcuts({ "/": { what: "find a run", run: () => search.focus() }, j: { what: "next run", run: () => moveFocus(1) }, k: { what: "previous run", run: () => moveFocus(-1) } });
  const poll = async () => { if (stopped) return; if (!document.hidden) await refresh(); setTimeout(poll, 2000); };
  poll();
  return { stop: () => { stopped = true; } };
}

function largestFigure({ largest, unavailable }) {
  if (!largest) return h("span", { class: "muted" }, unavailable || "no overall figure");
  const [format, noun] = largest.unit === "share" ? [percent, "win rate"] : [signed, "difference"];
  const details = [
    largest.low === null ? "no interval" : `95% CI ${format(largest.low)} to ${format(largest.high)}`,
    largest.p_holm === null || largest.p_holm === undefined ? null : `Holm-adjusted p ${largest.p_holm < 0.001 ? "< 0.001" : "= " + number(largest.p_holm, 3)}`,
    largest.count > 1 ? `largest of ${plural(largest.count, noun)}` : null,
  ].filter(Boolean).join("; ");
  return h("span", { title: largest.count > 1 ? "The largest of several is partly chance: see the others on the run's page." : null },
    h("bdi", {}, largest.label), " ", h("b", {}, format(largest.estimate)), ` (${details})`);
}
