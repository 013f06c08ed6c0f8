// The last tab of a run: how it was made, as stored in its file.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { errorBox, loading } from "./widgets.js";

const TEXT = (value) => (typeof value === "string" ? value : Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(", ") : JSON.stringify(value));

// Settings by what they mean, in the words of `--help`, each with its key.
function facts(title, values, meanings = {}) {
  const entries = Object.entries(values || {});
  if (!entries.length) return "";
  return h("section", {}, h("h2", {}, title), h("dl", { class: Object.keys(meanings).length ? "config described" : "config" }, entries.map(([key, value]) => h("div", {}, h("dt", {}, meanings[key] ? [meanings[key], " ", h("code", {}, key)] : key), h("dd", {}, h("bdi", {}, value === null || value === "" ? "–" : TEXT(value)))))));
}

export async function showConfig(box, run) {
  fill(box, loading());
  try {
    const { info, prompts, meanings } = await get("config", { run });
    const { config, versions, sources, study, target, models, plan, units } = info;
    fill(box, h("div", { class: "config-page" },
      facts("Run", { study, command: target, models: (models || []).join(", "), seed: config?.seed ?? null, units, "hash of the plan": plan }),
      facts("Config", config, meanings), facts("Versions", versions), facts("Data", sources),
      prompts.length ? h("section", {}, h("h2", {}, "Prompts"), prompts.map(({ name, text }) => h("details", { class: "prompt-text" }, h("summary", {}, name), h("pre", {}, text)))) : ""));
  } catch (error) { fill(box, errorBox(error)); }
}
