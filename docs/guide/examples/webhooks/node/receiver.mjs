// A receiver of webhooks. It needs nothing but Node 18 or newer:
//
//   TILL_WEBHOOK_SECRET=whsec_… PORT=3000 node receiver.mjs
//
// The types are in comments, so that TypeScript checks the file as it is.
import { createHmac, timingSafeEqual } from "node:crypto";
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

// Both stand for tables of your database; the first has a unique key on the id.
/** @type {Set<string>} */
const seen = new Set();
/** @type {Map<string, number>} */
const latest = new Map(); // of each payment, the newest sequence that was used

/**
 * Does the work, after the answer was given.
 * @param {{sequence: number, data: {payment?: {id: string, status: string}}}} event
 */
function work(event) {
  const payment = event.data.payment;
  if (!payment) return;
  if (event.sequence <= (latest.get(payment.id) ?? 0)) return; // older than what we know already
  latest.set(payment.id, event.sequence);
  console.log(`payment ${payment.id} is ${payment.status}`); // ship the goods here
}

const key = Buffer.from((process.env.TILL_WEBHOOK_SECRET ?? "").replace(/^whsec_/, ""), "base64");
if (key.length === 0) throw new Error("TILL_WEBHOOK_SECRET is missing");

const server = createServer(async (request, response) => {
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
    const event = JSON.parse(body.toString("utf8"));
    if (!seen.has(event.id)) {
      seen.add(event.id);
      setImmediate(work, event);
    }
    response.writeHead(204).end(); // also for what came before
  } catch {
    response.writeHead(400).end("refused");
  }
});
server.listen(Number(process.env.PORT), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === "object" && address?.port}`);
});
