// Faults of a page that a reader without a mouse, or with weak sight, would meet; the checks that matter most of axe's.
() => {
  const faults = [];
  const visible = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !node.closest("[aria-hidden=true]");
  const say = (node) => `${node.tagName.toLowerCase()}.${node.getAttribute("class") || ""} ${(node.textContent || "").slice(0, 40)}`;
  const name = (node) => node.getAttribute("aria-label") || node.getAttribute("title") || node.textContent.trim() || node.getAttribute("placeholder")
    || [...(node.labels || [])].map((label) => label.textContent).join("") || document.getElementById(node.getAttribute("aria-labelledby"))?.textContent;
  for (const node of document.querySelectorAll("a, button, input, select, textarea, summary, dialog, [role=img], [role=region], [role=radiogroup]"))
    if (visible(node) && !name(node)) faults.push(`no name: ${say(node)}`);
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) faults.push(`id twice: ${id}`);
  if (document.querySelectorAll("h1").length !== 1) faults.push("not exactly one h1");
  let level = 0;
  for (const node of [...document.querySelectorAll("h1, h2, h3, h4, h5")].filter(visible)) {
    if (Number(node.tagName[1]) > level + 1) faults.push(`heading skips a level: ${say(node)}`);
    level = Number(node.tagName[1]);
  }
  for (const node of document.querySelectorAll("table th")) if (!node.hasAttribute("scope")) faults.push(`th without scope: ${say(node)}`);
  for (const node of document.querySelectorAll("[tabindex]")) if (node.tabIndex > 0) faults.push(`positive tabindex: ${say(node)}`);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour, under) => { canvas.fillStyle = under ? `rgb(${under})` : "white"; canvas.fillRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  const background = (node) => (node ? channels(getComputedStyle(node).backgroundColor, background(node.parentElement)) : null);
  const linear = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const seen = new Set();
  for (const node of document.querySelectorAll("body *")) {
    if (!visible(node) || node.closest("svg") || ![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) || node.closest(":disabled, .off, .empty, .skip")) continue;
    const style = getComputedStyle(node);
    const [text, ground] = [light(channels(style.color, background(node))), light(background(node))];
    const ratio = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
    const fault = `contrast ${ratio.toFixed(1)}: ${node.tagName.toLowerCase()}.${node.className}`;
    if (ratio < (large ? 3 : 4.5) && !seen.has(fault)) { seen.add(fault); faults.push(`${fault} ${say(node)}`); }
  }
  return faults;
}
