// Passkeys. A button has the server's options; what the authenticator says goes into the form's field "answer" (or
// "proof_answer"), and the form is sent. Buttons are hidden until the browser is known to speak with authenticators.
const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const ids = (list) => (list || []).map((c) => ({ ...c, id: bytes(c.id) }));

function options(json) {
  const o = JSON.parse(json).publicKey;
  o.challenge = bytes(o.challenge);
  if (o.user) o.user.id = bytes(o.user.id);
  if (o.allowCredentials) o.allowCredentials = ids(o.allowCredentials);
  if (o.excludeCredentials) o.excludeCredentials = ids(o.excludeCredentials);
  return o;
}

function answer(c) {
  const r = c.response, out = { clientDataJSON: text(r.clientDataJSON) };
  for (const part of ["attestationObject", "authenticatorData", "signature", "userHandle"]) if (r[part]) out[part] = text(r[part]);
  if (r.getTransports) out.transports = r.getTransports();
  return JSON.stringify({ id: c.id, rawId: text(c.rawId), type: c.type, clientExtensionResults: c.getClientExtensionResults(), response: out });
}

function send(button, credential) {
  const form = button.form;
  (form.elements.answer || form.elements.proof_answer).value = answer(credential);
  form.submit();
}

let waiting; // the menu of the login field

if (window.PublicKeyCredential) {
  for (const b of document.querySelectorAll("[data-passkey-get]")) {
    b.hidden = false;
    b.form.querySelectorAll("[data-with-passkey]").forEach((e) => { e.hidden = false; });
    b.addEventListener("click", async () => {
      waiting?.abort();
      try { send(b, await navigator.credentials.get({ publicKey: options(b.dataset.passkeyGet) })); } catch { /* the person has changed their mind */ }
    });
    if ("passkeyMenu" in b.dataset && await PublicKeyCredential.isConditionalMediationAvailable?.()) {
      waiting = new AbortController();
      navigator.credentials.get({ publicKey: options(b.dataset.passkeyGet), mediation: "conditional", signal: waiting.signal })
        .then((c) => send(b, c)).catch(() => {});
    }
  }
  for (const b of document.querySelectorAll("[data-passkey-create]")) {
    b.addEventListener("click", async () => {
      const failed = b.form.querySelector("[data-passkey-failed]");
      failed.hidden = true;
      try { send(b, await navigator.credentials.create({ publicKey: options(b.dataset.passkeyCreate) })); } catch { failed.hidden = false; }
    });
  }
}
