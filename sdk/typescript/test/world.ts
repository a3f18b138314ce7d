import { createHmac } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { Till, Teller, type Change, type Collect, type TellerOptions } from "../src/index.js";
import { fileStore, type FileStore, type FileTx } from "../src/node/index.js";

export const secret = "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

type Thing = Record<string, unknown> & { id: string; status: string; idempotency_key: string };

/** A little Till: it takes payments and shows them. */
export class Service {
  readonly payments = new Map<string, Thing>(); // by key
  posts = 0;
  skew = 0;
  url = "";
  private readonly server = createServer((req, res) => {
    let body = "";
    req.on("data", (d: Buffer) => (body += d));
    req.on("end", () => {
      res.setHeader("Date", new Date(Date.now() + this.skew).toUTCString());
      const [status, answer] = this.answer(req.method!, new URL(req.url!, "http://x"), body);
      res.writeHead(status).end(JSON.stringify(answer));
    });
  });

  private answer(method: string, url: URL, body: string): [number, unknown] {
    if (method === "POST") {
      this.posts++;
      const p = JSON.parse(body) as Thing;
      const key = p.idempotency_key;
      if (!this.payments.has(key)) this.payments.set(key, { ...p, id: "p-" + key.slice(0, 8), status: "pending", resolution: { state: "waiting" } });
      return [202, this.payments.get(key)];
    }
    if (url.searchParams.has("wait")) return [400, { code: "invalid_parameter", status: 400 }];
    const found = [...this.payments.values()].find((p) => url.pathname.endsWith(p.id));
    return found ? [200, found] : [404, { code: "payment_not_found", status: 404 }];
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    this.server.unref();
  }

  /** Changes every payment. */
  set(status: string): void {
    for (const p of this.payments.values()) p.status = status;
  }

  first(): Thing {
    return [...this.payments.values()][0]!;
  }
}

const stores: FileStore[] = [];
after(() => Promise.all(stores.map((s) => s.close())));

/** A shop with its service. */
export class World {
  readonly service = new Service();
  readonly changes: Change[] = [];
  fail: Error | undefined;
  store!: FileStore;
  teller!: Teller<FileTx>;

  static async make(options: TellerOptions<FileTx> = {}): Promise<World> {
    const w = new World();
    await w.service.start();
    w.store = await fileStore(mkdtempSync(join(tmpdir(), "till-world-")));
    stores.push(w.store);
    const till = new Till({ baseUrl: w.service.url, apiKey: "till_test_a_b", expect: "test" });
    const onChange = (c: Change): void => {
      w.changes.push(c);
      if (w.fail) throw w.fail;
    };
    w.teller = new Teller(till, w.store, onChange, options);
    return w;
  }

  collect(c: Collect): Promise<void> {
    return this.store.update((tx) => this.teller.collect(tx, c));
  }

  /** Posts an event to the shop's webhook. */
  async deliver(id: string, kind: string, payment: object, change: (headers: Headers) => void = () => {}): Promise<[number, string]> {
    const { body, headers } = delivery(id, kind, payment);
    const h = new Headers(headers);
    change(h);
    const res = await this.teller.webhook(secret)(new Request("http://shop/till", { method: "POST", headers: h, body }));
    return [res.status, await res.text()];
  }
}

/** A delivery as the service signs it. */
export function delivery(id: string, kind: string, payment: object): { body: string; headers: Record<string, string> } {
  const body = JSON.stringify({ id, type: kind, sequence: 1, api_version: "1.1", created_at: "2026-11-15T05:51:53.123456Z", data: { payment } });
  const stamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", Buffer.from(secret.slice(6), "base64")).update(`${id}.${stamp}.${body}`).digest("base64");
  return { body, headers: { "content-type": "application/json", "webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": "v1," + signature } };
}

export const wish = (order: string): Collect => ({
  order, method: "mtn_momo", country: "CG", amount: { value: "5000", currency: "XAF" }, phone: "242061234567", metadata: { cart: 88 },
});
