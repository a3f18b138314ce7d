// Copy buttons, one language at a time, and search. Without it everything shows.
const { copy, copied, language, root, nothing } = document.body.dataset;
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const button = (text, act) => Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick: act });

const groups = all(".langs");
// Each group shows the reader's language, or what it showed, or its first.
const show = (name) => {
  for (const g of groups) {
    const parts = all("[data-lang]", g);
    const one = [name, g.dataset.shown, parts[0].dataset.lang].find((l) => parts.some((p) => p.dataset.lang === l));
    g.dataset.shown = one;
    for (const p of parts) p.hidden = p.dataset.lang !== one;
    for (const b of all(".pick button", g)) b.setAttribute("aria-pressed", b.textContent === one);
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

const search = document.getElementById("search");
search.hidden = false;
let index;
// The index has the pages, a line each, and below an empty line each word with its pages.
const load = async () => {
  const [pages, words] = (await (await fetch(root + "/search.txt")).text()).split("\n\n");
  return { pages: pages.split("\n").map((l) => l.split("\t")), words: words.trim().split("\n").map((l) => l.split("\t")) };
};
const look = async (text) => {
  const asked = text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
  if (!asked.length) return null;
  index ??= load();
  const { pages, words } = await index;
  const sets = asked.map((a) => new Set(words.filter(([w]) => w.startsWith(a)).flatMap(([, p]) => p.split(" "))));
  const title = (n) => asked.filter((a) => pages[n][1].toLowerCase().includes(a)).length;
  return [...sets[0]].filter((n) => sets.every((s) => s.has(n))).sort((a, b) => title(b) - title(a) || a - b).slice(0, 12).map((n) => pages[n]);
};
search.onsubmit = (e) => { e.preventDefault(); all("a", found)[0]?.click(); };
const found = search.querySelector("ul");
search.oninput = async () => {
  const text = search.q.value;
  let hits;
  try { hits = await look(text); } catch { index = undefined; hits = []; }
  if (text !== search.q.value) return;
  found.replaceChildren(...(hits ?? []).map(([path, title]) => {
    const li = document.createElement("li");
    li.append(Object.assign(document.createElement("a"), { href: root + path, textContent: title }));
    return li;
  }));
  if (hits && !hits.length) found.append(Object.assign(document.createElement("li"), { textContent: nothing }));
};

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
