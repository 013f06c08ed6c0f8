// A tab of a run: situations by identities (or methods, or models) as a heat map, the largest spread first.
import { get } from "./api.js";
import { distribution } from "./charts.js";
import { openDrawer } from "./drawer.js";
import { fill, go, h, link, number, plural, signed, unique } from "./dom.js";
import { facetName, facetValue, subjectTitle } from "./facets.js";
import { unitsOf } from "./units.js";
import { errorBox, loading, pager, unindexed } from "./widgets.js";

const STRONGEST = 60; // percent of colour in the cell that is furthest from the mean that it is compared with: the number stays readable

export function gridView(box, run, measure) {
  const state = { params: null, grid: null, row: 0, column: 0, ballots: new Map() };
  const about = h("div", { class: "grid-about", "aria-live": "polite" });
  const table = h("div", { class: "scroll grid-scroll", onkeydown: (event) => onArrow(event), onfocusin: (event) => follow(event.target), onmouseover: (event) => follow(event.target, false), onclick: (event) => open(event.target.closest("button[data-unit]")) });

  async function show(params, again = false) {
    state.params = params;
    if (!again) fill(box, loading());
    try {
      const grid = (await unitsOf(run, again || !state.grid)).grid(params);
      if (params !== state.params) return;
      const unit = table.contains(document.activeElement) ? document.activeElement.dataset.unit : null;
      state.grid = grid;
      state.ballots.clear(); // a row may have more units now
      draw();
      if (unit) table.querySelector(`button[data-unit="${CSS.escape(unit)}"]`)?.focus({ preventScroll: true });
      if (unindexed(grid) && !grid.index_error) setTimeout(() => { if (params === state.params && box.isConnected && !box.hidden) show(params, true); }, 2500);
    } catch (error) { fill(box, errorBox(error)); }
  }

  const change = (key, value) => { const next = new URLSearchParams(state.params); next.delete("page"); value ? next.set(key, value) : next.delete(key); go("/run", next); };
  const chooser = (label, key, names, chosen) => h("label", {}, `${label} `, h("select", { onchange: (event) => change(key, event.target.value) }, names.map((name) => h("option", { value: name, selected: name === chosen }, facetName(name)))));

  function draw() {
    const { rows, columns, groups, rowFacet, columnFacet, part, total, rowFacets, columnFacets } = state.grid;
    const unfinished = state.grid.index_error || unindexed(state.grid);
    if (!rows.length) return fill(box, h("p", { class: "muted" }, unfinished || "There is no grid for these units. A grid needs situations or texts, something that varies on them, and scores. The Units tab lists every unit."));
    [state.row, state.column] = [0, 0];
    const largest = Math.max(0, ...rows.flatMap((row) => row.cells.map((cell) => Math.abs(cell?.deviation ?? 0)))) || 1;
    const starts = columns.map((_, column) => column > 0 && groups.length > 0 && groups[column] !== groups[column - 1]);
    const heads = columns.flatMap((_, column) => (column && !starts[column] ? [] : [[groups[column], starts.findIndex((start, next) => next > column && start)]].map(([name, end]) => h("th", { scope: "colgroup", class: column ? "group-start" : "", colspan: (end < 0 ? columns.length : end) - column }, h("bdi", {}, name)))));
    const only = Object.entries(part).map(([facet, value]) => `${facetName(facet)}: ${facetValue(facet, value)}`);
    fill(table, h("table", { class: "heat" }, h("caption", { class: "unseen" }, `${measure()?.label || "score"} by ${facetName(rowFacet)} and ${facetName(columnFacet)}`),
      h("thead", {}, unique(groups).length > 1 ? h("tr", { class: "groups" }, h("td", { colspan: 2 }), heads) : "", h("tr", {}, h("th", { scope: "col" }, facetName(rowFacet)), h("th", { scope: "col", class: "num" }, "spread"), columns.map((label, column) => h("th", { scope: "col", class: starts[column] ? "num group-start" : "num" }, h("bdi", {}, facetValue(columnFacet, label)))))),
      h("tbody", {}, rows.map((row, nth) => h("tr", {}, h("th", { scope: "row", title: row.name }, h("bdi", {}, subjectTitle(row.facets, rowFacet, row.name))), h("td", { class: "num spread" }, number(row.spread)), row.cells.map((cell, column) => cellView(row, cell, largest, nth, column, starts[column])))))));
    fill(box, h("div", { class: "row spread" }, h("div", { class: "row" }, chooser("rows", "rows", rowFacets, rowFacet), chooser("columns", "columns", columnFacets.filter((name) => name !== rowFacet), columnFacet), only.length ? h("span", { class: "pill" }, only.join(", ")) : "", unfinished ? h("span", { class: "muted", role: "status" }, unfinished) : ""), pager(Number(state.params.get("page") || 0), total, "/run", state.params)),
      h("p", { class: "muted" }, `A cell is compared with the cells whose units differ from its own only in ${facetName(columnFacet)}: blue is above their mean, orange below it, and without such cells it has no colour. ▲ and ▼ mark the two that differ most, by the spread; rows with the largest come first. Press `, h("kbd", {}, "j"), " or ", h("kbd", {}, "k"), " for the next or previous situation, an arrow key for another cell, and ", h("kbd", {}, "Enter"), " to read its unit."),
      about, table);
    tell();
  }

  function cellView(row, cell, largest, nth, column, start) {
    const edge = start ? " group-start" : "";
    if (!cell) return h("td", { class: `num muted${edge}` }, "–");
    const mark = !row.spread ? "" : column === row.highest ? " ▲" : column === row.lowest ? " ▼" : "";
    return h("td", { class: `num ${cell.deviation > 0 ? "above" : "below"}${edge}`, vars: { "--heat": `${(STRONGEST * Math.abs(cell.deviation ?? 0)) / largest}%` } },
      h("button", { type: "button", tabindex: nth || column ? "-1" : "0", "data-unit": cell.units[0], "data-row": nth, "data-column": column }, number(cell.score), h("span", { class: "extreme" }, mark)));
  }

  const buttonAt = (row, column) => table.querySelector(`button[data-row="${row}"][data-column="${column}"]`);

  // What is in the cell that has the focus, or that the mouse is over: the distribution over the scale, and its units.
  function follow(target, focused = true) {
    const cell = target.closest?.("button[data-unit]");
    if (!cell) return;
    if (focused) { for (const other of table.querySelectorAll("button[tabindex='0']")) other.tabIndex = -1; cell.tabIndex = 0; }
    [state.row, state.column] = [Number(cell.dataset.row), Number(cell.dataset.column)];
    tell();
  }

  async function tell() {
    const { rows, columns, groups, rowFacet, columnFacet } = state.grid;
    const [row, column] = [state.row, state.column];
    const cell = rows[row].cells[column];
    if (!cell) return;
    const units = rows[row].cells.filter(Boolean).map((one) => one.units[0]);
    // Read once for a row; its other cells wait for the same answer.
    if (!state.ballots.has(units[0])) state.ballots.set(units[0], get("ballots", new URLSearchParams([["run", run], ...units.map((unit) => ["unit", unit])])).catch(() => ({})));
    const ballots = await state.ballots.get(units[0]);
    if (row !== state.row || column !== state.column) return;
    about.classList.toggle("tall", Object.keys(ballots).length > 0);
    const filters = new URLSearchParams([["run", run], ["tab", "units"], [`f.${rowFacet}`, rows[row].name], [`f.${columnFacet}`, columns[column]], ...Object.entries(state.grid.part).map(([facet, value]) => [`f.${facet}`, value])]);
    fill(about, h("p", {}, h("b", {}, h("bdi", {}, subjectTitle(rows[row].facets, rowFacet, rows[row].name))), ` · ${facetValue(columnFacet, columns[column])}: `, h("b", {}, number(cell.score)), cell.deviation === null ? "" : `, ${signed(cell.deviation)} from the mean of ${state.grid.groups[column] || "its row"}`, " · ", link("/run", filters, {}, plural(cell.units.length, "unit"))), distribution(ballots[cell.units[0]]));
  }

  function move(rows, columns = 0) {
    if (!state.grid?.rows.length) return;
    const last = [state.grid.rows.length - 1, state.grid.columns.length - 1];
    let [row, column] = [Math.max(0, Math.min(last[0], state.row + rows)), Math.max(0, Math.min(last[1], state.column + columns))];
    while (!buttonAt(row, column) && columns && column > 0 && column < last[1]) column += columns;
    const cell = buttonAt(row, column) || table.querySelector(`button[data-row="${row}"]`);
    cell?.focus({ preventScroll: true });
    cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function onArrow(event) {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (step && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); move(...step); }
  }

  function open(cell) { if (cell) openDrawer(table, cell, run, new URLSearchParams(), measure()); }

  return { show, move };
}
