import type { Teller } from "../teller.js";
import { maxDelivery } from "../webhook.js";

/** What a request of Node, Express or a Next API route is, as far as it is needed. */
export interface NodeRequest {
  method?: string | undefined;
  headers: { [name: string]: string | string[] | undefined };
  readableEnded?: boolean;
  body?: unknown;
  rawBody?: unknown;
  on(event: string, listener: (value?: any) => void): unknown;
  pause(): unknown;
}

/** What a response of Node is, as far as it is needed. */
export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text?: string): unknown;
}

const parsed =
  'body_was_read: something parsed the body before the Till webhook, and a signature is over its bytes. Write app.post("/till", nodeWebhook(teller, secret)) above app.use(express.json())';

/** Receives deliveries in Express and in every server of node:http. Give the old secret too while a rotation lasts. */
export function nodeWebhook<Tx>(teller: Teller<Tx>, ...secrets: (string | undefined)[]): (req: NodeRequest, res: NodeResponse) => Promise<void> {
  return async (req, res) => {
    const answer = (status: number, text: string) => {
      res.statusCode = status;
      if (text) res.setHeader("Content-Type", "text/plain; charset=utf-8");
      res.end(text);
    };
    if (req.method !== "POST") {
      res.setHeader("Allow", "POST");
      return answer(405, "post");
    }
    let bytes: Uint8Array | undefined;
    try {
      bytes = await read(req);
    } catch {
      return answer(400, "cut");
    }
    if (!bytes) return answer(500, parsed);
    if (bytes.length > maxDelivery) {
      res.setHeader("Connection", "close");
      return answer(400, "too_large");
    }
    const { status, text } = await teller.receive(secrets, req.headers, bytes);
    answer(status, text);
  };
}

/** The bytes as they came; undefined if they are gone. */
async function read(req: NodeRequest): Promise<Uint8Array | undefined> {
  for (const given of [req.rawBody, req.body]) if (given instanceof Uint8Array) return given; // express.raw, and some clouds
  if (req.body !== undefined || req.readableEnded) return undefined;
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const done = () => resolve(Buffer.concat(chunks));
    req.on("data", (chunk: Uint8Array) => {
      chunks.push(chunk);
      if ((length += chunk.length) <= maxDelivery) return;
      req.pause(); // the rest is not wanted
      done();
    });
    req.on("end", done);
    for (const broken of ["error", "close"]) req.on(broken, () => reject(new Error("cut"))); // after the end it says nothing new
  });
}
