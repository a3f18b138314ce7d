import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { inspect } from "node:util";
import { Misuse, newSecret, Refused, Till, TillError, Unavailable, Unclear, version, type CreatePayment, type MisuseCode, type TillOptions, type Try } from "../src/index.js";
import * as operations from "../src/operations.gen.js";
import type { Operation } from "../src/operation.js";

const testKey = "till_test_abc_secretsecretsecret";
const testPhone = "242061234567";
const uuid1 = "6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1";

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

const servers: Server[] = [];
after(() => servers.forEach((s) => (s.closeAllConnections(), s.close())));

async function listen(handler: Handler): Promise<string> {
  const server = createServer(handler);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

/** A service that answers one thing after the other, and the last one for ever. */
async function script(...answers: Handler[]) {
  const s = { answers, asked: [] as string[], bodies: [] as string[], headers: {} as IncomingMessage["headers"], url: "" };
  s.url = await listen((req, res) => {
    let body = "";
    req.on("data", (d: Buffer) => (body += d));
    req.on("end", () => {
      s.asked.push(`${req.method} ${req.url} ${req.headers["x-api-key"]}`);
      s.bodies.push(body);
      s.headers = req.headers;
      s.answers[Math.min(s.asked.length, s.answers.length) - 1]!(req, res);
    });
  });
  return s;
}

/** A client of the script that does not really wait. */
function client(url: string, options: Partial<TillOptions> = {}) {
  const till = new Till({ baseUrl: url, apiKey: testKey, ...options });
  const waited: number[] = [];
  till.caller.sleep = async (ms, signal) => (waited.push(ms), !signal?.aborted);
  till.caller.random = () => 0;
  return { till, waited };
}

const says = (status: number, body: string, headers: Record<string, string> = {}): Handler => (_req, res) => void res.writeHead(status, { "Content-Type": "application/json", ...headers }).end(body);
const problem = (status: number, code: string, headers: Record<string, string> = {}): Handler => says(status, JSON.stringify({ code, status, detail: "d", request_id: "r-1" }), headers);
/** Closes the connection without an answer. */
const hangUp: Handler = (req) => req.socket.destroy();
const payment = (status: string): string => JSON.stringify({ id: "p-1", status, idempotency_key: uuid1, created_at: "2026-11-15T05:51:53.123456Z", resolution: { state: "waiting" } });
const wish = (): CreatePayment => ({ method: "mtn_momo", country: "CG", amount: { value: "5000", currency: "XAF" }, idempotency_key: uuid1, customer: { phone: testPhone } });
const errorOf = (p: Promise<unknown>): Promise<unknown> => p.then(() => undefined, (e: unknown) => e);

test("a create is repeated with the same bytes, and its key", async () => {
  const s = await script(hangUp, says(502, "<html>"), problem(500, "internal_error"), says(202, payment("pending")));
  const tries: Try[] = [];
  const { till, waited } = client(s.url, { onTry: (t) => tries.push(t) });
  const p = await till.payments.create(wish());
  assert.equal(p.status, "pending");
  assert.equal(new Set(s.bodies).size, 1);
  assert.deepEqual(waited, [125, 250, 500]);
  assert.deepEqual(tries.map((t) => [t.status, t.reason, t.delay]), [[0, "reset", 0], [502, "", 125], [500, "", 250], [202, "", 500]]);
});

test("three outcomes, and nothing secret in them", async () => {
  const cases: [string, Handler[], typeof Refused, string, number][] = [
    ["refused", [problem(422, "validation_failed")], Refused, "validation_failed", 1],
    ["wrong key", [problem(401, "invalid_api_key")], Refused, "invalid_api_key", 1],
    ["unavailable", [problem(503, "method_unavailable", { "Retry-After": "3600" })], Unavailable, "method_unavailable", 1],
    ["too many", [problem(429, "rate_limited", { "Retry-After": "3600" })], Unavailable, "rate_limited", 1],
    ["unclear", [problem(500, "internal_error")], Unclear, "internal_error", 5],
    ["no answer", [hangUp], Unclear, "", 5],
    ["cut", [(_q, res) => (res.writeHead(202, { "Content-Length": "999" }), res.write("{"), setTimeout(() => res.destroy(), 5))], Unclear, "", 5],
    ["401 after no answer", [hangUp, problem(401, "invalid_api_key")], Unclear, "invalid_api_key", 2],
    ["conflict", [problem(409, "conflict")], Refused, "conflict", 1],
    ["redirect", [says(302, "", { Location: "http://127.0.0.1:1/" })], Refused, "", 1],
    ["another thing", [says(200, '{"ok":true}')], Unclear, "", 1],
    ["HTML", [says(200, "<html>")], Unclear, "", 5],
    ["an echo", [says(400, JSON.stringify({ code: "bad", detail: "X-Api-Key: " + testKey }))], Refused, "", 1],
  ];
  for (const [name, answers, kind, code, tries] of cases) {
    const s = await script(...answers);
    const e = await errorOf(client(s.url).till.payments.create(wish()));
    assert.ok(e instanceof kind && e instanceof TillError, `${name}: ${e}`);
    assert.deepEqual([e.code, e.idempotency_key, s.asked.length], [code, uuid1, tries], name);
    for (const secret of [testKey, "secretsecret", testPhone, "mtn_momo"]) assert.ok(!inspect(e, { depth: 9 }).includes(secret), `${name}: ${secret}`);
  }
});

test("a refusal after a lost answer is one only if a read by the key finds nothing", async () => {
  const cases: [Handler, string][] = [
    [says(200, '{"items":[],"total":0,"limit":50,"offset":0}'), "Refused"],
    [says(200, `{"items":[${payment("processing")}],"total":1,"limit":50,"offset":0}`), "taken"],
    [problem(403, "insufficient_scope"), "Unclear"],
    [says(200, '{"ok":true}'), "Unclear"], // a portal's JSON is no list
  ];
  for (const [read, want] of cases) {
    const s = await script(hangUp, problem(422, "validation_failed"), read);
    const got = await client(s.url).till.payments.create(wish()).then(() => "taken", (e: Error) => e.name);
    assert.equal(got, want);
    assert.ok(s.asked[2]!.includes("idempotency_key=" + uuid1));
  }
});

test("a checkout is made again with the same bytes, and never looked up", async () => {
  const checkout = (state: string, key = uuid1): string => JSON.stringify({ id: "c-1", url: "https://pay.example.com/p/X", state, idempotency_key: key, created_at: "2026-11-15T05:51:53.123456Z", return_secret: "r-1" });
  const order = { amount: { value: "5000", currency: "XAF" }, idempotency_key: uuid1.toUpperCase(), reference: "order-7" };
  const s = await script(hangUp, problem(500, "internal_error"), says(201, checkout("open")));
  const made = await client(s.url).till.checkouts.create(order);
  assert.deepEqual([made.id, made.url, made.return_secret, s.bodies.length, new Set(s.bodies).size], ["c-1", "https://pay.example.com/p/X", "r-1", 3, 1]);
  for (const answers of [[hangUp, problem(422, "validation_failed")], [says(200, '{"ok":true}')], [says(201, checkout("open", "another"))]]) {
    const s = await script(...answers);
    const e = await errorOf(client(s.url).till.checkouts.create(order));
    assert.ok(e instanceof Unclear && e.idempotency_key === order.idempotency_key, String(e));
    assert.equal(s.asked.length, answers.length);
  }
  const without = await errorOf(client(s.url).till.checkouts.create({ ...order, idempotency_key: "" }));
  assert.ok(without instanceof Misuse && without.code === "no_idempotency_key");

  const page = says(200, `{"items":[${checkout("paid")}],"total":1,"limit":50,"offset":0}`);
  const other = await script(says(200, checkout("paid")), says(200, checkout("cancelled")), page);
  const { till } = client(other.url);
  assert.equal((await till.checkouts.get("c-1")).state, "paid");
  assert.equal((await till.checkouts.cancel("c-1")).state, "cancelled");
  const filter = { state: "paid", reference: "order-7", from_date: new Date(Date.UTC(2026, 10, 1)), to_date: "2026-12-01T00:00:00Z", order: "asc" } as const;
  assert.equal((await till.checkouts.page({ ...filter, limit: 9 })).total, 1);
  const all: string[] = [];
  for await (const c of till.checkouts.all(filter)) all.push(c.id);
  assert.deepEqual(all, ["c-1"]);
  const query = "state=paid&reference=order-7&from_date=2026-11-01T00%3A00%3A00.000Z&to_date=2026-12-01T00%3A00%3A00Z&order=asc";
  assert.deepEqual(other.asked, ["GET /v1/checkouts/c-1", "POST /v1/checkouts/c-1/cancel", `GET /v1/checkouts?${query}&limit=9`, `GET /v1/checkouts?${query}&limit=200`].map((a) => `${a} ${testKey}`));
});

test("what cannot be repeated is not, unless not one byte was written", async () => {
  for (const answer of [hangUp, says(502, "<html>"), problem(503, "service_unavailable", { "Retry-After": "1" })]) {
    const s = await script(answer);
    assert.ok((await errorOf(client(s.url).till.apiKeys.create())) instanceof Unclear);
    assert.equal(s.asked.length, 1);
  }
  const url = await listen(() => {});
  await new Promise((resolve) => servers.pop()!.close(resolve));
  let tries = 0;
  const e = await errorOf(client(url, { onTry: () => tries++ }).till.apiKeys.create());
  assert.ok(e instanceof Unavailable && e.reason === "unreachable", String(e));
  assert.equal(tries, 5);
});

test("a secret of your own lets an endpoint be made again", async () => {
  const s = await script(hangUp, says(201, '{"id":"e-1"}'));
  const secret = newSecret();
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.equal((await client(s.url).till.webhooks.create({ url: "https://shop.example.com/till", events: ["*"], secret })).id, "e-1");
  assert.equal(s.asked.length, 2);
  const never = await script(hangUp, says(201, '{"id":"e-1"}'));
  assert.ok((await errorOf(client(never.url).till.webhooks.create({ url: "https://shop.example.com/till", events: ["*"] }))) instanceof Unclear);
});

test("a failure proves that nothing was sent only if no connection was made", async () => {
  const failing = (cause: object) => async () => {
    throw Object.assign(new TypeError("fetch failed"), { cause });
  };
  for (const [cause, sent] of [
    [new Error("it did not work"), true],
    [{ code: "ECONNRESET", syscall: "read" }, true],
    [{ code: "UND_ERR_SOCKET" }, true],
    [{ code: "EHOSTUNREACH", syscall: "connect" }, false],
    [{ code: "ENOTFOUND", syscall: "getaddrinfo" }, false],
    [{ errors: [{ code: "ECONNREFUSED", syscall: "connect" }], code: "ECONNREFUSED" }, false],
    [{ code: "UND_ERR_CONNECT_TIMEOUT" }, false],
    [{ code: "UND_ERR_HEADERS_TIMEOUT" }, true],
    [{ code: "CERT_HAS_EXPIRED" }, false],
    [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, false],
  ] as [object, boolean][]) {
    const till = new Till({ baseUrl: "https://pay.example.com", apiKey: testKey, tries: 1, fetch: failing(cause) as typeof fetch });
    assert.equal((await errorOf(till.payments.create(wish()))) instanceof Unclear, sent, inspect(cause));
  }
});

test("a delete that is gone when it is repeated was done", async () => {
  const s = await script(hangUp, problem(404, "webhook_endpoint_not_found"));
  await client(s.url).till.webhooks.delete("e-1");
  const first = await script(problem(404, "webhook_endpoint_not_found"));
  assert.ok((await errorOf(client(first.url).till.webhooks.delete("e-1"))) instanceof Refused);
});

test("Retry-After is the floor, and beyond the deadline the call gives up at once", async () => {
  let s = await script(problem(503, "service_unavailable", { "Retry-After": "4" }), says(200, payment("success")));
  let c = client(s.url);
  await c.till.payments.get("p-1");
  assert.deepEqual(c.waited, [4000]);
  s = await script(problem(503, "service_unavailable", { "Retry-After": "31" }));
  c = client(s.url);
  const e = await errorOf(c.till.payments.get("p-1"));
  assert.ok(e instanceof Unavailable && e.retry_after === 31);
  assert.deepEqual([c.waited.length, s.asked.length], [0, 1]);
});

test("with no tokens left the first failure is the answer; successes give them back", async () => {
  const s = await script(says(500, ""));
  const { till } = client(s.url);
  for (let i = 0; i < 40; i++) await errorOf(till.payments.get("p-1"));
  assert.equal(s.asked.length, 60);
  s.answers = [says(200, payment("success"))];
  for (let i = 0; i < 12; i++) await till.payments.get("p-1");
  assert.equal(till.caller.tokens, 12);
});

test("a call that is slow ends with its deadline, and says so", async () => {
  const s = await script(() => {});
  const till = new Till({ baseUrl: s.url, apiKey: testKey, deadline: 300, tryTimeout: 100 });
  const began = Date.now();
  const e = await errorOf(till.payments.create(wish()));
  assert.ok(e instanceof Unclear && e.reason === "timeout" && Date.now() - began < 3000, String(e));
  const control = new AbortController();
  setTimeout(() => control.abort(new Error("enough")), 20);
  const cancelled = await errorOf(till.payments.get("p-1", { signal: control.signal }));
  assert.ok(cancelled instanceof Unavailable && cancelled.reason === "cancelled" && (cancelled.cause as Error).message === "enough", String(cancelled));
});

test("the key is asked for each call, and once more after a 401", async () => {
  let s = await script(problem(401, "invalid_api_key"), says(200, payment("success")));
  let n = 0;
  await client(s.url, { apiKey: async () => "till_test_k" + ++n }).till.payments.get("p-1");
  assert.ok(s.asked[1]!.endsWith("_k2"));
  s = await script(problem(401, "invalid_api_key"));
  assert.ok((await errorOf(client(s.url).till.payments.get("p-1"))) instanceof Refused);
  assert.equal(s.asked.length, 1);
  s = await script(hangUp, problem(401, "invalid_api_key"));
  const keys = [testKey];
  const lost = await errorOf(client(s.url, { apiKey: () => { if (keys.length) return keys.pop()!; throw new Error("no vault"); } }).till.payments.create(wish()));
  assert.ok(lost instanceof Unclear && lost.code === "invalid_api_key", `the error of the key hides that it may have arrived: ${lost}`);
  for (const [key, code] of [["", "no_key"], ["till_live_x", "wrong_mode"], ["till_test_x\n", "bad_key"], ["till_test_ x", "bad_key"]] as [string, MisuseCode][]) {
    const e = await errorOf(client(s.url, { apiKey: () => key, expect: "test" }).till.payments.get("p-1"));
    assert.ok(e instanceof Misuse && e.code === code && !(key && e.message.includes(key)), `${key}: ${e}`);
  }
});

test("what a client can be made of", async () => {
  const make = (baseUrl: string, options: Partial<TillOptions> = {}) => () => new Till({ baseUrl, apiKey: testKey, ...options });
  for (const good of ["https://pay.example.com/v1", "http://127.0.0.1:8080/v1", "http://localhost:1/v1/", "http://[::1]:1/v1"]) assert.doesNotThrow(make(good), good);
  for (const bad of ["http://pay.example.com/v1", "http://10.0.0.1/v1", "ftp://127.0.0.1", "", "pay.example.com", "https://user:pass@pay.example.com", "https://pay.example.com/v1?key=1"])
    assert.throws(make(bad), { code: "bad_base_url" }, bad);
  assert.doesNotThrow(make("http://pay.example.com/v1", { plainHttp: true }));
  assert.throws(make("https://pay.example.com", { apiKey: undefined }), { code: "no_key" });
  assert.throws(make("https://pay.example.com", { tries: 0 }), { code: "bad_option" });
  assert.throws(make("https://pay.example.com", { expect: "prod" as "live" }), { code: "bad_option" });
  const e = await errorOf(make("https://pay.example.com")().payments.create({} as CreatePayment));
  assert.ok(e instanceof Misuse && e.code === "no_idempotency_key");
  (globalThis as { document?: object }).document = {};
  assert.throws(make("https://pay.example.com"), { code: "in_a_page" });
  delete (globalThis as { document?: object }).document;
  assert.ok(!inspect(make("https://pay.example.com")(), { depth: 9, showHidden: true }).includes("secretsecret"));
});

test("every request says who it is, and nothing else about the machine", async () => {
  const s = await script(says(200, payment("success")));
  await client(s.url).till.payments.get("p-1");
  assert.equal(s.headers["user-agent"], `till-sdk-typescript/${version} (api 1.1)`);
});

test("every operation has its address, and no path is without its values", () => {
  const { caller } = new Till({ baseUrl: "https://pay.example.com/v1", apiKey: testKey });
  for (const op of Object.values(operations).filter((o) => Array.isArray(o) && o.length === 3) as unknown as Operation[]) {
    const address = caller.address({ op, params: ["a/b?c", "d"] });
    assert.ok(!/[{?]/.test(address.slice(8)), address);
  }
});

interface Item { id: string; status: string; created_at: string }

/** A list of payments that grows and changes while it is read. */
async function fakeList(items: Item[], grow?: (items: Item[], reads: number) => void): Promise<string> {
  let reads = 0;
  return listen((req, res) => {
    const q = new URL(req.url!, "http://x").searchParams;
    const [from, to, status] = [q.get("from_date"), q.get("to_date"), q.get("status")];
    let found = items.filter((p) => (!from || p.created_at >= from) && (!to || p.created_at <= to) && (!status || p.status === status));
    if (q.get("order") !== "asc") found = found.reverse();
    const offset = Number(q.get("offset"));
    res.end(JSON.stringify({ items: found.slice(offset, offset + Number(q.get("limit"))), total: found.length, limit: 200, offset }));
    grow?.(items, ++reads);
  });
}

test("lists go by time", async () => {
  const at = (n: number) => `2026-11-15T00:00:${String(Math.floor(n / 1e6)).padStart(2, "0")}.${String(n % 1e6).padStart(6, "0")}Z`;
  const make = (n: number, time: (i: number) => number = (i) => i, first = 0): Item[] => Array.from({ length: n }, (_, i) => ({ id: `p-${first + i}`, status: "pending", created_at: at(time(i)) }));
  const cases: [string, Item[], object, ((items: Item[], reads: number) => void)?][] = [
    ["nothing", [], {}],
    ["one page", make(199), {}],
    ["exactly a page", make(200), {}],
    ["many pages, newest first", make(1001), {}],
    ["many pages, oldest first", make(1001), { order: "asc" }],
    ["all at one moment", make(700, () => 0), {}],
    ["three at each moment", make(1000, (i) => Math.floor(i / 3)), { order: "asc" }],
    ["while it grows", make(1000), {}, (items, reads) => items.push(...make(50, (i) => 10_000 * reads + i, items.length))],
    ["while its status changes", make(1000), { status: "pending" }, (items, reads) => items.slice(0, Math.max(0, 1000 - reads * 200)).forEach((p, i) => { if (i % 7 === 0) p.status = "success"; })],
  ];
  for (const [name, items, filter, grow] of cases) {
    const n = items.length;
    const { till } = client(await fakeList(items, grow));
    const seen = new Map<string, number>();
    for await (const p of till.payments.all(filter)) seen.set(p.id, (seen.get(p.id) ?? 0) + 1);
    for (const p of items.slice(0, n)) {
      const times = seen.get(p.id) ?? 0;
      assert.ok(times === 1 || (times === 0 && p.status === "success"), `${name}: ${p.id} came ${times} times`);
    }
  }
});

test("an export that is cut is not taken for the whole", async () => {
  const line = '{"id":"t-1","sequence":1,"amount":{"value":"999999999999999","currency":"XAF"}}\n';
  const cut: Handler = (_req, res) => (res.writeHead(200, { "Content-Length": "1000" }), res.write(line + line.slice(0, 20)), void setTimeout(() => res.destroy(), 20));
  for (const [name, answers, lines, fails, asked] of [
    ["whole", [says(200, line + line + "\n" + line)], 3, false, 1],
    ["empty", [says(200, "")], 0, false, 1],
    ["without its last end", [says(200, line + line.trim())], 2, false, 1],
    ["cut", [cut], 1, true, 1],
    ["refused", [problem(403, "insufficient_scope")], 0, true, 1],
    ["after a while", [problem(503, "service_unavailable"), says(200, line)], 1, false, 2],
    ["no JSON", [says(200, line + "<html>\n")], 1, true, 1],
    ["hangs", [(_req, res) => (res.writeHead(200), void res.write(line))], 1, true, 1],
  ] as [string, Handler[], number, boolean, number][]) {
    const s = await script(...answers);
    const got: string[] = [];
    const e = await errorOf((async () => {
      for await (const t of client(s.url, { tryTimeout: 500 }).till.transactions.export()) got.push(t.amount.value);
    })());
    assert.deepEqual([got.length, e !== undefined, s.asked.length], [lines, fails, asked], `${name}: ${e}`);
    if (e) assert.ok(e instanceof TillError && e.cause === undefined && (name !== "hangs" || e.reason === "timeout"), name);
    assert.ok(got.every((v) => v === "999999999999999"));
  }
  const s = await script(says(200, line.repeat(3)));
  for await (const t of client(s.url).till.transactions.export()) if (t.id) break; // nobody reads on
});
