// Shortcuts: / search, g and a letter go, j k walk rows, Enter opens, n collects, ? tells. None while somebody types,
// and none if the person has turned them off.
const page = document.documentElement;
let going = 0;

const typing = (e) => e.target.closest?.("input, textarea, select, [contenteditable]") || e.ctrlKey || e.metaKey || e.altKey;
const rows = () => [...document.querySelectorAll("[data-row] a[data-open]")];

function walk(step) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement);
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function go(key) {
  const link = document.querySelector(`a[data-key="${CSS.escape(key)}"]`);
  if (link) location.assign(link.href);
}

document.addEventListener("keydown", (e) => {
  if (page.dataset.keys === "off" || typing(e)) return;
  if (Date.now() - going < 1500 && /^[a-z]$/.test(e.key)) { going = 0; return go("g" + e.key); }
  switch (e.key) {
    case "/": {
      const box = document.querySelector("input[type=search]");
      if (box) { e.preventDefault(); box.focus(); box.select(); }
      break;
    }
    case "g": going = Date.now(); break;
    case "j": walk(1); break;
    case "k": walk(-1); break;
    case "n": go("n"); break;
    case "?": document.getElementById("keys")?.showModal(); break;
  }
});
