// Keeps a page fresh: regions are fetched again when a hint comes or their time is over, time that is left counts
// down, values of charts show under the pointer, texts are copied. Without this script a page shows the same, once.

// The only way by which text becomes markup: answers of our own server to fetches of regions.
const policy = globalThis.trustedTypes?.createPolicy("till", { createHTML: (text) => text });
const parse = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");

const regions = () => [...document.querySelectorAll("[data-live]")];
const busy = new Set();
const tags = new Map();

// A region keeps what people have opened and where they type.
const options = {
  morphStyle: "outerHTML",
  ignoreActiveValue: true,
  callbacks: {
    beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS"),
  },
};

async function refresh(region) {
  const id = region.id;
  if (busy.has(id)) return;
  busy.add(id);
  try {
    const address = new URL(region.dataset.from || location.href, location.href);
    if (address.origin !== location.origin) return;
    const headers = { "Till-Region": id };
    if (tags.has(id)) headers["If-None-Match"] = tags.get(id);
    const answer = await fetch(address, { headers, credentials: "same-origin", redirect: "error", cache: "no-store" });
    if (answer.status === 401 || answer.status === 404) return location.reload();
    if (answer.status !== 200) return;
    tags.set(id, answer.headers.get("ETag"));
    const next = parse(await answer.text()).getElementById(id);
    const now = document.getElementById(id);
    const rang = document.getElementById("pin");
    if (next && now) Idiomorph.morph(now, next, options);
    if (!rang && document.activeElement === document.body) document.getElementById("pin")?.focus(); // a prompt has come
    tick();
  } catch {
    // The line is away: the next hint or the next interval tries again.
  } finally {
    busy.delete(id);
    schedule(id);
  }
}

// Each region has one timer; data-every is in seconds.
const timers = new Map();
function schedule(id) {
  clearTimeout(timers.get(id));
  const region = document.getElementById(id);
  const every = Number(region?.dataset.every);
  if (!every || document.hidden) return;
  timers.set(id, setTimeout(() => { const r = document.getElementById(id); if (r && !document.hidden) refresh(r); }, every * 1000));
}

// One stream for each visible tab. The server ends it after five minutes, and the browser asks again.
let stream;
function listen() {
  const address = document.documentElement.dataset.stream;
  if (!address || document.hidden || stream || regions().length === 0) return;
  stream = new EventSource(address);
  stream.addEventListener("hint", () => regions().forEach(refresh));
  stream.addEventListener("full", () => { hangUp(); setTimeout(listen, 60000); }); // too many listen: until then time alone has to do
}
function hangUp() { stream?.close(); stream = undefined; }

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return hangUp();
  regions().forEach(refresh);
  listen();
});
addEventListener("pagehide", hangUp);
// What is shown once does not come back with the page, wherever the browser keeps it.
addEventListener("pagehide", () => document.querySelectorAll("[data-once]").forEach((e) => e.remove()));
addEventListener("pageshow", (e) => { if (e.persisted) { regions().forEach(refresh); listen(); } });

// Time that is left. The server's clock decides, so that a wrong one here does not.
const skew = Number(document.documentElement.dataset.now || Date.now()) - Date.now();
function tick() {
  for (const e of document.querySelectorAll("[data-until]")) {
    const left = Math.max(0, Math.floor((Number(e.dataset.until) - Date.now() - skew) / 1000));
    const [m, s] = [Math.floor(left / 60), left % 60];
    const text = m ? `${m}\u00a0min ${s}\u00a0s` : `${s}\u00a0s`;
    if (e.textContent !== text) e.textContent = text;
    if (left === 0 && !e.dataset.over) { e.dataset.over = "1"; const r = e.closest("[data-live]"); if (r) setTimeout(refresh, 1000, r); }
  }
}
if (document.querySelector("[data-until], [data-live]")) { tick(); setInterval(tick, 1000); }

document.addEventListener("click", async (e) => {
  const share = e.target.closest("[data-share]");
  if (share && navigator.share) { // the phone's own list of programs; else the link is followed
    e.preventDefault();
    navigator.share({ text: share.dataset.share }).catch(() => {});
  }
  const copy = e.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard?.writeText(copy.dataset.copy);
    copy.classList.add("done");
    setTimeout(() => copy.classList.remove("done"), 1500);
  }
  for (const d of document.querySelectorAll("details.drop[open]")) if (!d.contains(e.target)) d.open = false;
});
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape") return;
  for (const d of document.querySelectorAll("details.drop[open]")) { d.open = false; d.querySelector("summary").focus(); }
});

// The value of a chart's slot, under the pointer or the focus.
let bubble;
function say(e) {
  const slot = e.target.closest?.(".slot[data-value]");
  if (!slot) return hush();
  const box = slot.closest(".chart");
  if (!bubble) { bubble = document.createElement("div"); bubble.className = "bubble"; bubble.setAttribute("role", "status"); }
  bubble.textContent = slot.dataset.value;
  box.append(bubble);
  const [a, b] = [slot.getBoundingClientRect(), box.getBoundingClientRect()];
  const half = bubble.offsetWidth / 2;
  bubble.style.left = `${Math.min(Math.max(a.left + a.width / 2 - b.left, half), b.width - half)}px`;
  bubble.style.top = `${Math.max(a.top - b.top, bubble.offsetHeight)}px`;
}
function hush() { bubble?.remove(); }
document.addEventListener("pointerover", say);
document.addEventListener("focusin", say);

// What a search finds while somebody types. What is typed goes into the body of a request, never into an address.
let asked = 0, asks;
async function seek(box) {
  const text = box.value.trim(), nth = ++asked;
  if ([...text].length < 3) return forget();
  try {
    const answer = await fetch(box.form.action, { method: "POST", headers: { "Till-Region": "found" }, body: new URLSearchParams({ q: text }), credentials: "same-origin", redirect: "error" });
    if (answer.status !== 200 || nth !== asked) return;
    const found = parse(await answer.text()).getElementById("found");
    forget();
    if (found?.firstElementChild && document.activeElement === box) box.form.append(found);
  } catch {
    // The line is away: Enter still searches.
  }
}
function forget() { document.getElementById("found")?.remove(); }
document.addEventListener("input", (e) => {
  if (e.target.dataset?.typed === undefined) return;
  clearTimeout(asks);
  asks = setTimeout(seek, 200, e.target);
});
document.addEventListener("keydown", (e) => {
  const found = document.getElementById("found");
  if (!found || !found.parentElement.contains(e.target)) return;
  if (e.key === "Escape") { asked++; forget(); return; }
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!step) return;
  e.preventDefault();
  const all = [found.parentElement.querySelector("[data-typed]"), ...found.querySelectorAll("a")];
  all[Math.min(Math.max(all.indexOf(e.target) + step, 0), all.length - 1)].focus();
});
document.addEventListener("focusout", (e) => {
  const form = e.target.form ?? e.target.closest?.("form");
  if (e.relatedTarget && !form?.contains(e.relatedTarget)) forget();
});
document.addEventListener("pointerdown", (e) => { const found = document.getElementById("found"); if (found && !found.parentElement.contains(e.target)) forget(); });

regions().forEach((r) => schedule(r.id));
listen();
