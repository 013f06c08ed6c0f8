// The last tab of a run: how it was made, as stored in its file.
import { get } from "./api.js";
import { fill, h, plural, unique } from "./dom.js";
import { errorBox, loading } from "./widgets.js";

const TEXT = (value) => (typeof value === "string" ? value : Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(", ") : JSON.stringify(value));
const HASH = /^[0-9a-f]{40,}$/; // the beginning of one is enough to tell two apart

// Names and values; a setting has what it means as a hint, in the words of `--help`.
function list(entries, meanings = {}) {
  return h("dl", { class: "config" }, entries.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, h("bdi", HASH.test(value) ? { title: value } : {}, HASH.test(value) ? `${value.slice(0, 12)}…` : value === null || value === "" ? "–" : TEXT(value)), meanings[key] ? h("p", { class: "muted" }, meanings[key]) : ""))));
}

function facts(title, values) { const entries = Object.entries(values || {}); return entries.length ? h("section", {}, h("h2", {}, title), list(entries)) : ""; }

// What somebody chose comes first; what they left as it was is folded.
function settings(config, meanings, defaults) {
  const entries = Object.entries(config || {});
  const isDefault = ([key, value]) => value === null || value === "" || (key in defaults && JSON.stringify(value) === JSON.stringify(defaults[key]));
  const [chosen, rest] = [entries.filter((entry) => !isDefault(entry)), entries.filter(isDefault)];
  return entries.length ? h("section", { class: "whole" }, h("h2", {}, "Settings"), list(chosen, meanings), rest.length ? h("details", {}, h("summary", {}, `${plural(rest.length, "setting")} at the default`), list(rest, meanings)) : "") : "";
}

// By the folder that they are from: a run can have a hundred wordings.
function promptList(prompts) {
  const folderOf = ({ name }) => (name.includes("/") ? name.split("/")[0] : "");
  const one = ({ name, text }) => h("details", { class: "prompt-text" }, h("summary", {}, name.slice(name.indexOf("/") + 1)), h("pre", {}, text));
  return h("section", { class: "whole" }, h("h2", {}, "Prompts"), unique(prompts.map(folderOf)).map((folder) => {
    const own = prompts.filter((prompt) => folderOf(prompt) === folder);
    return folder ? h("details", { class: "prompt-text" }, h("summary", {}, `${folder} (${own.length})`), h("div", { class: "prompt-names" }, own.map(one))) : own.map(one);
  }));
}

export async function showConfig(box, run) {
  fill(box, loading());
  try {
    const { info, prompts, meanings, defaults = {} } = await get("config", { run });
    const { config, versions, sources, study, target, models, plan, units } = info;
    fill(box, h("div", { class: "config-page" },
      settings(config, meanings, defaults), facts("Run", { study: target || study, models: (models || []).join(", "), units, "hash of the plan": plan }),
      facts("Versions", versions), facts("Data", sources), prompts.length ? promptList(prompts) : ""));
  } catch (error) { fill(box, errorBox(error)); }
}
