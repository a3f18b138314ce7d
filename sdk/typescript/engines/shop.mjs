// A shop that receives webhooks with the SDK and one of the frameworks: node shop.mjs Express. tools/handlers tests each with till webhook check.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { Teller, Till } from "../dist/src/index.js";
import { fastifyWebhook, fileStore, nodeWebhook } from "../dist/src/node/index.js";

const { FOLDER, PORT, TILL_WEBHOOK_SECRET: secret } = process.env;
const till = new Till({ baseUrl: "http://127.0.0.1:1/v1", apiKey: "till_test_a_b", expect: "test" });
const teller = new Teller(till, await fileStore(FOLDER + "/store"), (change) => {
  if (change.paid) appendFileSync(FOLDER + "/acted", `${change.payment.id} ${change.payment.amount.value}\n`);
}, { foreign: true });

/** Serves a function from a Request to a Response, as the runtimes of Hono and Next do. */
function serve(handler) {
  createServer(async (req, res) => {
    const body = req.method === "POST" ? { body: Readable.toWeb(req), duplex: "half" } : {};
    const answer = await handler(new Request(`http://127.0.0.1:${PORT}${req.url}`, { method: req.method, headers: req.headers, ...body }));
    res.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
  }).listen(PORT, "127.0.0.1");
}

const shops = {
  Express() {
    const app = express();
    app.post("/till", nodeWebhook(teller, secret));
    app.use(express.json());
    app.listen(PORT, "127.0.0.1");
  },
  async Fastify() {
    const app = Fastify();
    app.register(fastifyWebhook(teller, secret), { prefix: "/till" });
    await app.listen({ port: Number(PORT), host: "127.0.0.1" });
  },
  Hono() {
    const app = new Hono();
    app.post("/till", (c) => teller.webhook(secret)(c.req.raw));
    serve((request) => app.fetch(request));
  },
  Next() {
    const route = { POST: teller.webhook(secret) }; // app/till/route.ts
    serve((request) => route[request.method]?.(request) ?? new Response(null, { status: 405 }));
  },
};
await shops[process.argv[2]]();
