import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { AlreadyPaid, AttemptOpen, InvalidWish, Money, OrderError, Refused, SweepFailed, type CheckoutWish, type Collect } from "../src/index.js";
import { nodeWebhook } from "../src/node/index.js";
import { delivery, secret, wish, World } from "./world.js";

test("collect, send, wait", async () => {
  const w = await World.make();
  await w.collect(wish("o-1"));
  assert.equal(w.service.posts, 0, "collect made a call");
  const p = await w.teller.send("o-1");
  assert.ok(p.state === "taken" && p.payment && p.id);
  assert.equal((await w.teller.send("o-1")).state, "taken");
  assert.equal(w.service.posts, 1);
  w.service.set("success");
  assert.equal((await w.teller.wait("o-1", 1000)).status, "success");
  assert.equal(w.changes.length, 1);
  const [c] = w.changes;
  assert.ok(c!.paid && c!.order === "o-1" && c!.attempt === 1 && !c!.failed && !c!.alreadyPaid);
  await assert.rejects(w.collect(wish("o-1")), AlreadyPaid);
  assert.deepEqual([w.service.first()["reference"], w.service.first()["metadata"]], ["o-1", { cart: 88 }]);
});

test("a double click is one payment, and another wish waits", async () => {
  const w = await World.make();
  await w.collect(wish("o-1"));
  await w.collect({ ...wish("o-1"), amount: Money.minor("5000", "XAF") });
  await assert.rejects(w.collect({ ...wish("o-1"), phone: "242061111111" }), (e) => e instanceof AttemptOpen && e.expires_at > new Date());
  await w.teller.withdraw("o-1");
  await w.collect({ ...wish("o-1"), phone: "242061111111" });
  await w.teller.send("o-1");
  assert.deepEqual([w.service.posts, w.service.payments.size], [1, 1]);
  await assert.rejects(w.teller.withdraw("o-1"), { code: "may_have_arrived" });
});

test("a wish that the service would refuse is not written", async () => {
  const w = await World.make();
  for (const [member, change] of Object.entries({
    order: { order: "" }, method: { method: "" }, amount: { amount: { value: "50.00", currency: "KES" } }, phone: { phone: "+242061234567" }, metadata: { metadata: { f: () => 1 } },
  } as Record<string, Partial<Collect>>)) {
    await assert.rejects(w.collect({ ...wish("o-1"), ...change }), (e) => e instanceof InvalidWish && e.member === member);
  }
  await assert.rejects(w.collect({ ...wish("o-1"), amount: { value: 5000 as unknown as string, currency: "XAF" } }), TypeError);
  await assert.rejects(w.teller.send("o-1"), (e) => e instanceof OrderError && e.code === "no_attempt");
});

test("a wish to be paid on a page that the service would refuse is not written, either", async () => {
  const w = await World.make();
  const good = { order: "o-1", amount: Money.minor("5000", "XAF") };
  for (const [member, change] of Object.entries({
    order: { order: "é".repeat(65) }, amount: { amount: { value: "0", currency: "XAF" } }, phone: { phone_fixed: true }, "description or reference": { description: "x".repeat(256) },
    metadata: { metadata: { f: () => 1 } },
  } as Record<string, Partial<CheckoutWish>>)) {
    await assert.rejects(w.store.update((tx) => w.teller.checkout(tx, { ...good, ...change })), (e) => e instanceof InvalidWish && e.member === member, member);
  }
  await assert.rejects(w.store.update((tx) => w.teller.checkout(tx, { order: "o-1" } as CheckoutWish)));
  await assert.rejects(w.teller.sendCheckout("o-1"), (e) => e instanceof OrderError && e.code === "no_attempt");
});

test("a payment that this store did not make is no news, unless it is asked for", async () => {
  for (const foreign of [false, true]) {
    const w = await World.make({ foreign });
    assert.deepEqual(await w.deliver("e-1", "payment.success", { id: "p-1", status: "success", idempotency_key: "k" }), [204, ""]);
    assert.equal(w.changes.length, foreign ? 1 : 0);
  }
});

test("a request that is not what it should be gets one word", async () => {
  let told: unknown;
  const w = await World.make({ foreign: true, onReport: (_report, error) => (told = error) });
  const p = { id: "p-1", status: "success", idempotency_key: "k", reference: "other shop" };
  for (const [change, status, text] of [
    [() => {}, 204, ""],
    [() => {}, 204, ""],
    [(h) => h.delete("webhook-id"), 400, "missing_header"],
    [(h) => h.set("webhook-id", "x"), 400, "bad_signature"],
  ] as [(h: Headers) => void, number, string][])
    assert.deepEqual(await w.deliver("e-1", "payment.success", p, change), [status, text]);
  assert.equal(w.changes.length, 1);
  assert.deepEqual([w.changes[0]!.order, w.changes[0]!.reference], ["", "other shop"]);
  w.fail = new Error("no");
  assert.deepEqual(await w.deliver("e-2", "payment.success", { ...p, id: "p-2" }), [500, "not done"]);
  assert.equal(told, w.fail);
  const hook = w.teller.webhook(secret);
  assert.equal((await hook(new Request("http://shop/till"))).status, 405);
  const read = new Request("http://shop/till", { method: "POST", body: "x" });
  await read.text();
  assert.match(await (await hook(read)).text(), /^body_was_read/);
  assert.equal(await (await hook(new Request("http://shop/till", { method: "POST", body: "x".repeat((1 << 20) + 1) }))).text(), "too_large");
  assert.equal((await w.teller.webhook(undefined)(new Request("http://shop/till", { method: "POST", body: "x" }))).status, 500);
});

test("a delivery that is refused for its age names the clocks, if an answer told their difference", async () => {
  const w = await World.make({ now: () => Date.now() + 600_000 });
  const p = { id: "p-1", status: "success", idempotency_key: "k" };
  assert.deepEqual(await w.deliver("e-1", "payment.success", p), [400, "too_old"]);
  w.service.skew = -600_000;
  await w.collect(wish("o-1"));
  await w.teller.send("o-1");
  assert.match((await w.deliver("e-1", "payment.success", p))[1], /^too_old: this machine's clock is (599|600|601) s ahead of the service's$/);
});

test("other kinds go to onOther once each, progress to onProgress once each", async () => {
  const others: string[] = [];
  const progress: string[] = [];
  const w = await World.make({ foreign: true, onOther: (e) => void others.push(e.type), onProgress: (c) => void progress.push(c.kind) });
  const p = { id: "p-1", status: "processing", idempotency_key: "k" };
  for (const [id, kind] of [
    ["e-1", "payment.pending"], ["e-1", "payment.pending"], ["e-2", "payment.processing"], ["e-9", "payment.pending"], ["e-3", "payment.updated"], ["e-3", "payment.updated"],
    ["e-4", "payment.updated"], ["e-5", "moon.rises"], ["e-6", "payment.blessed"], ["e-6", "payment.blessed"], ["e-7", "payment.constructor"], ["e-8", "moon"],
  ] as const)
    assert.equal((await w.deliver(id, kind, p))[0], 204, kind);
  assert.deepEqual(progress, ["payment.pending", "payment.processing"]);
  assert.deepEqual(others, ["payment.updated", "payment.updated", "moon.rises", "payment.blessed", "payment.constructor", "moon"]);
  assert.equal(w.changes.length, 0);
});

test("a payment that a restored service made again is told again only if it brings money where there was none", async () => {
  for (const [first, then, want] of [
    ["success", "success", ["payment.success"]],
    ["success", "failed", ["payment.success"]],
    ["failed", "failed", ["payment.failed"]],
    ["failed", "success", ["payment.failed", "payment.success"]],
    ["expired", "late_success", ["payment.expired", "payment.late_success"]],
    ["reversed", "success", ["payment.reversed"]],
  ] as [string, string, string[]][]) {
    const w = await World.make();
    await w.collect(wish("o-1"));
    await w.teller.send("o-1");
    const p = w.service.first();
    await w.deliver("e-1", "payment." + first, p);
    const again = { id: "p-again", status: "x", idempotency_key: p.idempotency_key };
    for (const _ of [1, 2]) {
      await w.deliver("e-2", "payment.pending", again);
      await w.deliver("e-3", "payment." + then, again);
    }
    assert.deepEqual(w.changes.map((c) => c.kind), want, `${first}, then ${then}`);
  }
});

test("a payment that the service does not know any more is lost, not posted again", async () => {
  const w = await World.make({ openAfter: -1000 });
  await w.collect(wish("o-1"));
  await w.teller.send("o-1");
  w.service.payments.clear();
  const failed = await w.teller.sweep().then(() => undefined, (e: unknown) => e); // there is no log here
  assert.ok(failed instanceof SweepFailed);
  assert.deepEqual([failed.report.attention.map((a) => a.state), w.service.posts], [["lost"], 1]);
  await assert.rejects(w.collect({ ...wish("o-1"), phone: "242061111111" }), AttemptOpen);
  assert.equal((await w.teller.resend("o-1")).state, "taken");
  assert.equal(w.service.posts, 2);
  await assert.rejects(w.teller.resend("o-1"), { code: "not_lost" });
});

test("news that comes while a stale wish is looked for is not overwritten by its lapse", async () => {
  let now = Date.now();
  const w = await World.make({ now: () => now, lookAfter: 0, sendUntil: { payment: 1000 } });
  await w.collect(wish("o-1"));
  const row = (await w.store.newest("payment", "o-1"))!;
  await w.store.count(row, now + 1, now + 2);
  now += 60_000;
  // The read finds nothing, and before its answer is noted a webhook brings the payment.
  const apply = w.store.apply.bind(w.store);
  w.store.apply = async (...args) => {
    await w.store.settle({ idempotency_key: row.idempotency_key, state: "taken", remote_id: "p-1" });
    return apply(...args);
  };
  w.service["answer" as never] = (() => [200, { items: [], total: 0, limit: 50, offset: 0 }]) as never;
  assert.equal((await w.teller.send("o-1")).state, "unclear");
  assert.equal((await w.store.newest("payment", "o-1"))!.state, "taken");
  assert.deepEqual(w.changes, []);
});

test("a payout that may have been sent is not over because the service does not know it", async () => {
  let now = Date.now();
  const w = await World.make({ now: () => now, lookAfter: 0, sendUntil: { payout: 3_600_000 } });
  const payOut = (order: string, value: string) => w.store.update((tx) => w.teller.payOut(tx, { order, method: "mtn_momo", country: "CG", amount: Money.minor(value, "XAF"), phone: "242061234567" }));
  const answer = (method: string) => (method === "POST" ? [422, { code: "insufficient_balance", status: 422 }] : [200, { items: [], total: 0, limit: 50, offset: 0 }]);
  w.service["answer" as never] = answer as never;
  await payOut("o-1", "2000");
  await w.store.count((await w.store.newest("payout", "o-1"))!, now + 1, now);
  assert.equal((await w.teller.sendPayOut("o-1")).state, "unclear"); // refused, but not the try before
  now += 7_200_000;
  assert.equal((await w.teller.sendPayOut("o-1")).state, "lost");
  assert.equal((await w.teller.sendPayOut("o-1")).state, "lost");
  assert.deepEqual((await w.store.attention(0, 9)).map((r) => [r.state, r.problem]), [["lost", "stale"]]);
  await assert.rejects(payOut("o-1", "2500"), AttemptOpen);
  await payOut("o-2", "2000");
  await assert.rejects(w.teller.sendPayOut("o-2"), Refused); // at the first try nothing exists
});

test("in a server of node:http", async () => {
  const w = await World.make({ foreign: true });
  let before: ((req: { body?: unknown }) => void) | undefined;
  const hook = nodeWebhook(w.teller, secret);
  const server = createServer((req, res) => (before?.(req as { body?: unknown }), void hook(req, res)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/till`;
  const post = async (body: string, headers: Record<string, string>): Promise<[number, string]> => {
    const res = await fetch(url, { method: "POST", body, headers });
    return [res.status, await res.text()];
  };
  const d = delivery("e-1", "payment.success", { id: "p-1", status: "success", idempotency_key: "k" });
  assert.deepEqual(await post(d.body, d.headers), [204, ""]);
  assert.deepEqual(await post(d.body, { ...d.headers, "webhook-signature": "v1,x" }), [400, "bad_signature"]);
  assert.deepEqual(await post("x".repeat((1 << 20) + 100), d.headers), [400, "too_large"]);
  assert.equal((await fetch(url)).status, 405);
  before = (req) => (req.body = JSON.parse(d.body));
  const [status, text] = await post(d.body, d.headers);
  assert.ok(status === 500 && /^body_was_read: .*above app.use\(express.json\(\)\)$/.test(text), text);
  before = (req) => (req.body = Buffer.from(d.body));
  assert.deepEqual(await post(d.body, d.headers), [204, ""]);
  server.closeAllConnections();
  server.close();
  assert.equal(w.changes.length, 1);
});
