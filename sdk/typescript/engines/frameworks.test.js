import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { fastifyWebhook, nodeWebhook } from "../dist/src/node/index.js";
import { delivery, secret, World } from "../dist/test/world.js";

const closing = [];
after(() => Promise.all(closing.map((close) => close())));

async function listen(handler) {
  const server = createServer(handler);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve))));
  return `http://127.0.0.1:${server.address().port}/till`;
}

/** How each framework receives, as the guide writes it: an address, or a function from a Request to a Response. */
const receivers = {
  Express: (teller) => {
    const app = express();
    app.post("/till", nodeWebhook(teller, secret));
    app.use(express.json());
    return listen(app);
  },
  "Express with express.raw": (teller) => {
    const app = express();
    app.post("/till", express.raw({ type: "*/*" }), nodeWebhook(teller, secret));
    return listen(app);
  },
  "node:http": (teller) => listen(nodeWebhook(teller, secret)),
  Fastify: async (teller) => {
    const app = Fastify();
    app.post("/other", async (request) => request.body); // its own parser stays
    app.register(fastifyWebhook(teller, secret), { prefix: "/till" });
    await app.listen({ port: 0, host: "127.0.0.1" });
    closing.push(() => app.close());
    return `http://127.0.0.1:${app.server.address().port}/till`;
  },
  Hono: async (teller) => {
    const app = new Hono();
    app.post("/till", (c) => teller.webhook(secret)(c.req.raw));
    return (request) => app.fetch(request);
  },
  "a Next route": async (teller) => teller.webhook(secret),
};

for (const [name, make] of Object.entries(receivers))
  test(name, async () => {
    const w = await World.make();
    const to = await make(w.teller);
    const send = async (body, headers, method = "POST") => {
      const request = new Request(typeof to === "string" ? to : "http://shop/till", { method, headers, ...(method === "POST" ? { body } : {}) });
      const res = typeof to === "string" ? await fetch(request) : await to(request);
      return [res.status, await res.text()];
    };
    const p = { id: "p-1", status: "success", idempotency_key: "k", metadata: { text: "é 😀 \u2028" } };
    const d = delivery("e-1", "payment.success", p);
    assert.deepEqual(await send(d.body, d.headers), [204, ""]);
    assert.deepEqual((await Promise.all([1, 2, 3, 4, 5].map(() => send(d.body, d.headers)))).map((r) => r[0]), [204, 204, 204, 204, 204]);
    const again = delivery("e-2", "payment.success", p);
    assert.deepEqual(await send(again.body, again.headers), [204, ""]);
    assert.equal(w.changes.length, 1);
    assert.deepEqual(await send(d.body.replace("success", "succes5"), d.headers), [400, "bad_signature"]);
    const spaced = delivery("e-3", "payment.reversed", p);
    assert.deepEqual(await send(JSON.stringify(JSON.parse(spaced.body), null, 1), spaced.headers), [400, "bad_signature"]);
    const { "webhook-signature": _, ...unsigned } = d.headers;
    assert.deepEqual(await send(d.body, unsigned), [400, "missing_header"]);
    const old = { ...d.headers, "webhook-timestamp": "1700000000" };
    assert.deepEqual(await send(d.body, old), [400, "bad_signature"]);
    assert.ok((await send("", {}, "GET"))[0] >= 400);
    w.fail = new Error("no");
    const late = delivery("e-4", "payment.success", { ...p, id: "p-2" });
    assert.deepEqual(await send(late.body, late.headers), [500, "not done"]);
    w.fail = undefined;
    assert.deepEqual(await send(late.body, late.headers), [204, ""]);
    assert.equal(w.changes.length, 3);
  });

test("Express that has parsed the body says which line to move", async () => {
  const w = await World.make();
  const app = express();
  app.use(express.json());
  app.post("/till", nodeWebhook(w.teller, secret));
  const d = delivery("e-1", "payment.success", { id: "p-1", status: "success", idempotency_key: "k" });
  const res = await fetch(await listen(app), { method: "POST", ...d });
  assert.equal(res.status, 500);
  assert.match(await res.text(), /^body_was_read: .*app\.post.* above app\.use\(express\.json\(\)\)$/);
  assert.equal(w.changes.length, 0);
});
