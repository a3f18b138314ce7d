// Copy buttons, one language at a time, and the search in the list of names. Without it everything shows.
const { copy, copied, language } = document.body.dataset;
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const button = (text, act) => Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick: act });

const groups = all(".langs");
const show = (name) => {
  for (const g of groups) {
    const parts = all("[data-lang]", g);
    if (!parts.some((p) => p.dataset.lang === name)) continue;
    for (const p of parts) p.hidden = p.dataset.lang !== name;
    for (const b of all(".pick button", g)) b.setAttribute("aria-pressed", b.textContent === name);
  }
};
for (const g of groups) {
  const pick = document.createElement("div");
  pick.className = "pick";
  pick.setAttribute("role", "group");
  pick.setAttribute("aria-label", language);
  for (const p of all("[data-lang]", g)) {
    p.querySelector("h4").hidden = true;
    pick.append(button(p.dataset.lang, () => {
      show(p.dataset.lang);
      try { localStorage.setItem("docs-language", p.dataset.lang); } catch {}
    }));
  }
  g.prepend(pick);
}
show("curl");
try { show(localStorage.getItem("docs-language")); } catch {}

const find = document.getElementById("find");
if (find) {
  find.closest("p").hidden = false;
  find.oninput = () => {
    const wanted = find.value.trim().toLowerCase();
    for (const li of all(".names li")) li.hidden = !li.firstChild.textContent.toLowerCase().includes(wanted);
  };
}

if (navigator.clipboard) for (const pre of all("pre:not(:has(.language-text, .language-json))")) {
  const box = document.createElement("div");
  box.className = "code";
  pre.replaceWith(box);
  const b = button(copy, async () => {
    await navigator.clipboard.writeText(pre.textContent.trimEnd() + "\n");
    b.textContent = copied;
    setTimeout(() => (b.textContent = copy), 1500);
  });
  box.append(pre, b);
}
