import type { Teller } from "../teller.js";
import { maxDelivery, type HeadersLike } from "../webhook.js";

/** What a scope of Fastify is, as far as it is needed. */
export interface FastifyLike {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(type: string, options: any, parser: (request: any, body: any, done: (error: Error | null, body?: unknown) => void) => void): unknown;
  post(path: string, handler: (request: any, reply: any) => Promise<unknown>): unknown;
}

/** Receives deliveries in Fastify, as a plugin: `fastify.register(fastifyWebhook(teller, secret), { prefix: "/till" })`. It reads bodies itself, in its own scope only. */
export function fastifyWebhook<Tx>(teller: Teller<Tx>, ...secrets: (string | undefined)[]): (scope: FastifyLike) => Promise<void> {
  return async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: maxDelivery }, (_request, body, done) => done(null, body));
    scope.post("/", async (request: { headers: HeadersLike; body: unknown }, reply: { code(status: number): { send(text: string): unknown } }) => {
      const bytes = request.body instanceof Uint8Array ? request.body : new Uint8Array();
      const { status, text } = await teller.receive(secrets, request.headers, bytes);
      return reply.code(status).send(text);
    });
  };
}
