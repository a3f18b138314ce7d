// The counter: shows the whole number before it is asked, takes the method that the number begins with, puts the
// amount on the button, and runs the clock of a request. Without it the server shows the number on a page of its own.
const form = document.querySelector("form[data-desk]");
const digits = (s) => s.replace(/\D/g, "");
const group = (s) => { // as the server writes numbers: pairs, and three where the count is odd
  const out = [];
  while (s.length) { const n = s.length % 2 && s.length <= 7 ? 3 : 2; out.push(s.slice(0, n)); s = s.slice(n); }
  return out.join("\u00a0");
};

if (form) {
  const { amount, phone, sure } = form.elements;
  const button = form.querySelector("[data-ask]");
  const plain = button.textContent;
  const shown = form.querySelector("[data-shown]");
  const options = [...form.querySelectorAll("[data-calling]")];
  const chosen = () => options.find((o) => o.checked || o.selected) ?? options[0];
  let byHand = false;

  const update = () => {
    const national = digits(phone.value).replace(/^00/, "");
    if (!byHand && national) {
      const fits = (o) => { // 0712… is 712… where numbers themselves begin with no zero
        const local = o.dataset.example.startsWith("0") ? national : national.replace(/^0/, "");
        return o.dataset.prefixes && o.dataset.prefixes.split(" ").some((p) => local.startsWith(p) || national.startsWith(digits(o.dataset.calling) + p));
      };
      const found = options.find(fits);
      if (found && found !== chosen()) { if ("checked" in found) found.checked = true; else found.selected = true; }
      form.querySelector("[data-chosen]").hidden = !found;
    }
    const market = chosen().dataset;
    const code = digits(market.calling);
    for (const e of form.querySelectorAll("span[data-unit]")) e.textContent = market.unit;
    phone.placeholder = market.example;
    const size = digits(market.example).length;
    let full = national.length === code.length + size && national.startsWith(code) ? national.slice(code.length) : national;
    if (full.length === size + 1 && full.startsWith("0")) full = full.slice(1);
    const whole = full.length === size;
    sure.value = whole ? code + full : "";
    const [before, after = ""] = shown.dataset.shown.split("{phone}");
    const number = document.createElement("b");
    number.textContent = `+${code}\u00a0${group(full)}`;
    shown.replaceChildren(...(whole ? [before, number, after] : []));
    const sum = amount.value.trim();
    button.textContent = sum && whole ? button.dataset.ask.replace("{amount}", `${sum}\u00a0${market.unit}`) : plain;
  };
  form.addEventListener("input", update);
  form.addEventListener("change", (e) => { if (e.target.name === "market") { byHand = true; form.querySelector("[data-chosen]").hidden = true; update(); } });
  form.addEventListener("submit", () => { button.setAttribute("aria-busy", "true"); });
  update();
}

// The server's clock decides.
const skew = Number(document.documentElement.dataset.now || Date.now()) - Date.now();
const run = () => {
  for (const e of document.querySelectorAll("[data-clock]")) {
    const left = Math.max(0, Math.floor((Number(e.dataset.clock) - Date.now() - skew) / 1000));
    e.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    const share = Math.min(100, Math.floor(left * 100 / Number(e.dataset.window)));
    e.closest(".ring")?.querySelector(".p")?.setAttribute("stroke-dasharray", `${share} 100`);
  }
};
setInterval(run, 1000);
run();

document.addEventListener("click", (e) => { if (e.target.closest("[data-print]")) print(); });
