// A receiver of webhooks, with its sweep. It needs nothing but Node 18 or newer:
//
//   TILL_WEBHOOK_SECRET=whsec_… TILL_API_KEY=till_… TILL_URL=http://127.0.0.1:8080/v1 PORT=3000 node receiver.mjs
//
// The types are in comments, so that TypeScript checks the file as it is.
import { createHmac, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const TOLERANCE = 5 * 60; // seconds
const MAX_BODY = 1 << 20;

/**
 * Throws unless this very delivery was signed with our secret, a short time
 * ago. The body is the bytes as they came, not JSON written anew.
 * @param {Buffer} key
 * @param {import("node:http").IncomingHttpHeaders} headers
 * @param {Buffer} body
 */
function verify(key, headers, body) {
  const id = String(headers["webhook-id"] ?? "");
  const timestamp = String(headers["webhook-timestamp"] ?? "");
  const signatures = String(headers["webhook-signature"] ?? "");
  if (!id || !/^\d+$/.test(timestamp)) throw new Error("a header is missing or wrong");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE) throw new Error("too old, or from the future");
  const mac = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const want = Buffer.from(`v1,${mac}`);
  const matches = signatures.split(" ").some((text) => { // two during a rotation
    const given = Buffer.from(text);
    return given.length === want.length && timingSafeEqual(given, want);
  });
  if (!matches) throw new Error("no signature matches");
}

// The steps of a payment's money. It only goes forward: what comes twice, or in
// another order, tells a step that was taken before.
const NOT_PAID = 1, PAID = 2, TAKEN_BACK = 3;
/** @type {Map<string, number>} */
const STEPS = new Map([
  ["payment.failed", NOT_PAID], ["payment.expired", NOT_PAID],
  ["payment.success", PAID], ["payment.late_success", PAID],
  ["payment.reversed", TAKEN_BACK],
]);

// The shop stands for two tables of your database and a cursor. The file is
// written where you would commit.
const path = process.env.SHOP || "shop.json";
/** @type {{steps: Record<string, number>, orders: Record<string, string>, log: string | null, cursor: number}} */
const shop = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {
  steps: {}, // of each payment, the last step
  orders: {}, // of each order that is paid, the payment that paid it
  log: null, // which event log
  cursor: 0, // how far the sweep has read it
};

function commit() {
  writeFileSync(`${path}.new`, JSON.stringify(shop), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/**
 * Does what an event asks of us, once. Webhooks and the sweep both end here. It
 * goes by the kind of the event: the status of a payment stays what it was when
 * money comes late, or is taken back.
 * @param {{type: string, data: {payment?: {id: string, reference: string | null}}}} event
 */
function react(event) {
  const payment = event.data.payment;
  const step = STEPS.get(event.type) ?? 0;
  if (!payment || step <= (shop.steps[payment.id] ?? 0)) return; // nothing about money, or nothing new
  shop.steps[payment.id] = step;
  const order = payment.reference ?? payment.id;
  const by = shop.orders[order];
  if (step === NOT_PAID && !by) {
    console.log(`not paid: ${order}`); // say so to the customer
  } else if (step === PAID && !by) {
    shop.orders[order] = payment.id;
    console.log(`ship: ${order}`);
  } else if (step === PAID) {
    console.log(`give back: ${payment.id}, ${order} is paid already`); // the customer tried twice
  } else if (step === TAKEN_BACK && by === payment.id) {
    delete shop.orders[order];
    console.log(`stop: ${order}, the money was taken back`);
  }
}

/**
 * Reads the event log from where it was left to its end: what no webhook
 * brought is found here. A log that is another, or ends before our cursor, was
 * restored from a backup: it is read from its beginning, which repeats nothing.
 */
async function sweep() {
  for (;;) {
    const response = await fetch(`${process.env.TILL_URL}/events?after=${shop.cursor}&limit=200`, {
      headers: { "X-Api-Key": process.env.TILL_API_KEY ?? "" },
      signal: AbortSignal.timeout(30_000),
    });
    if (response.status !== 200 && response.status !== 409) throw new Error(`status ${response.status}`);
    const page = await response.json();
    if (response.status === 409 || (shop.log && shop.log !== page.log_id)) {
      console.error("the log was set back: see the guide, 'Read the event log'");
      shop.log = page.log_id ?? null;
      shop.cursor = 0;
      commit();
      continue;
    }
    for (const event of page.items) react(event);
    const ended = page.next_after === shop.cursor;
    shop.log = page.log_id;
    shop.cursor = page.next_after;
    commit();
    if (ended) return;
  }
}

const key = Buffer.from((process.env.TILL_WEBHOOK_SECRET ?? "").replace(/^whsec_/, ""), "base64");
if (key.length === 0) throw new Error("TILL_WEBHOOK_SECRET is missing");

(async () => { // at the start and every five minutes
  for (;;) {
    await sweep().catch((error) => console.error("sweep:", String(error))); // the next one begins where this one ended
    await new Promise((resolve) => setTimeout(resolve, 1000 * (Number(process.env.SWEEP_SECONDS) || 300)));
  }
})();

const server = createServer(async (request, response) => {
  let event;
  try {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
      size += chunk.length;
      if (size > MAX_BODY) throw new Error("too large");
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks);
    verify(key, request.headers, body);
    event = JSON.parse(body.toString("utf8"));
  } catch {
    response.writeHead(400).end("refused");
    return;
  }
  try {
    react(event);
    commit();
    response.writeHead(204).end(); // also for what came before
  } catch {
    response.writeHead(500).end("not stored"); // it will come again
  }
});
server.listen(Number(process.env.PORT), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === "object" && address?.port}`);
});
