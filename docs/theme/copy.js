// A button on every block of commands or code that copies it.
async function copied(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* no clipboard for files in some browsers */ }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

for (const code of document.querySelectorAll("pre > code:is(.language-sh, .language-bash, .language-python, .language-toml, .language-yaml)")) {
  const block = document.createElement("div");
  block.className = "block";
  const pre = code.parentElement;
  pre.replaceWith(block);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    button.textContent = (await copied(code.textContent.trimEnd())) ? "copied" : "select it";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  block.append(pre, button);
}
