import { AsyncLocalStorage } from "node:async_hooks";
import { createHmac, randomUUID } from "node:crypto";
import { appendFile, readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Money, type Payment, type PaymentFilter, type Store, type Till } from "../src/index.js";
import type { NodeRequest, NodeResponse } from "../src/node/index.js";

/** The mistakes that can be switched on; the suite catches each. */
export const mutants = [
  "new_key_per_try", "key_not_stored", "body_anew", "no_age_check", "signature_over_parsed", "duplicates_by_event_id", "rank_ignored",
  "conflict_retried", "retry_after_ignored", "float_amount", "offset_paging", "unknown_status_final", "function_outside",
  "lapse_forgotten", "foreign_handed_over", "history_shipped",
  "refund_new_key_per_try", "refund_booked_by_amount", "refund_booked_on_202",
  "ask_shipped", "overpaid_forgotten", "failed_ask_ends",
];

/** Tells whether a shop hears of asks as of payments, as one should not. */
export const asksAlone = (mutant: string): boolean => mutant === "ask_shipped" || mutant === "failed_ask_ends";

const ofCheckout = /"checkout":(?=\{"id":"[^"]*","link_id":(?:null|"[^"]*"),"n":)/g;

const keyForm = /"idempotency_key":"[^"]*"/g;
const statuses = ["pending", "processing", "success", "failed", "expired", "cancelled"];

/** Carries requests, dies where it is told to, and makes mistakes. */
export function mutatedFetch(mutant: string, crash: (point: string) => void): typeof fetch {
  return async (address, init) => {
    const create = init?.method === "POST" && /\/(payments|payouts|refunds|checkouts)$/.test(String(address));
    const newKey = create && (mutant === "new_key_per_try" || (mutant === "refund_new_key_per_try" && String(address).endsWith("/refunds")));
    const meant = init?.body ? new TextDecoder().decode(init.body as Uint8Array) : ""; // before the mistake
    let body = init?.body ?? null;
    if (newKey) body = meant.replace(keyForm, `"idempotency_key":"${randomUUID()}"`);
    if (create && mutant === "body_anew") body = meant.replace(/}$/, `,"description":"at ${process.hrtime.bigint()}"}`);
    const go = () => fetch(address, { ...init, body });
    let res = await go();
    for (let n = 0; n < 3 && res.status === 409 && mutant === "conflict_retried"; n++) res = await go();
    if (create) crash("after_send");
    const rewrite = (text: string, headers = new Headers(res.headers)) => {
      headers.delete("content-length");
      return new Response(res.status === 204 ? null : text, { status: res.status, headers });
    };
    if (mutant === "retry_after_ignored" && res.headers.has("Retry-After")) {
      const headers = new Headers(res.headers);
      headers.delete("Retry-After");
      return rewrite(await res.text(), headers);
    }
    if (mutant === "unknown_status_final") {
      const text = await res.text();
      return rewrite(text.replace(/"status":"([a-z_]+)","method"/g, (m, s: string) => (statuses.includes(s) ? m : '"status":"failed","method"')));
    }
    if (asksAlone(mutant)) return rewrite((await res.text()).replace(ofCheckout, '"hidden":'));
    // The key that was sent is read as the one that was meant.
    if (newKey) return rewrite((await res.text()).replace(keyForm, meant.match(keyForm)![0]));
    return res;
  };
}

/** The id of the delivery that is being received. */
const eventId = new AsyncLocalStorage<string>();

/** Dies where it is told to, and makes mistakes. */
export function mutatedStore<Tx>(store: Store<Tx>, mutant: string, crash: (point: string) => void): Store<Tx> {
  const own: Partial<Store<Tx>> = {
    put(tx, row) {
      crash("before_write");
      return store.put(tx, row);
    },
    async count(row, lease, next) {
      const counted = await store.count(row, lease, next);
      if (counted) crash("after_count");
      return counted;
    },
    settle(s) {
      crash("after_answer");
      return store.settle(s);
    },
    apply(subject, kind, key, fn) {
      const byEvent = mutant === "duplicates_by_event_id";
      return store.apply(byEvent ? (eventId.getStore() ?? randomUUID()) : subject, kind, key, async (tx, s, rows) => {
        if (byEvent || mutant === "rank_ignored") {
          s.rank = 0;
          for (const r of rows) r.status = ""; // it says the same
        }
        const decision = await fn(tx, s, rows);
        crash("after_function");
        return decision;
      });
    },
  };
  return new Proxy(store, {
    get(target, name) {
      const found = own[name as keyof Store<Tx>] ?? target[name as keyof Store<Tx>];
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}

type Handler = (req: NodeRequest, res: NodeResponse) => Promise<void>;

/** The receiver of webhooks with a mistake. */
export function mutated(mutant: string, secrets: string[], next: Handler): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  return async (req, res) => {
    if (mutant === "duplicates_by_event_id") return eventId.run(String(req.headers["webhook-id"]), () => next(req, res));
    if (mutant !== "no_age_check" && mutant !== "signature_over_parsed") return next(req, res);
    const { method, headers } = req;
    let rawBody: Uint8Array = await buffer(req);
    if (mutant === "no_age_check") rejuvenate(headers, rawBody, secrets);
    else rawBody = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(rawBody).toString())));
    return next(Object.assign(req, { method, headers, rawBody }), res);
  };
}

/** Signs a good delivery as if it came now. */
function rejuvenate(headers: NodeJS.Dict<string | string[]>, body: Uint8Array, secrets: string[]): void {
  const sign = (secret: string, stamp: string) =>
    "v1," + createHmac("sha256", Buffer.from(secret.slice(6), "base64")).update(`${headers["webhook-id"]}.${stamp}.`).update(body).digest("base64");
  for (const secret of secrets) {
    if (!String(headers["webhook-signature"]).includes(sign(secret, String(headers["webhook-timestamp"])))) continue;
    const now = String(Math.floor(Date.now() / 1000));
    headers["webhook-timestamp"] = now;
    headers["webhook-signature"] = sign(secret, now);
    return;
  }
}

/** Reads an amount with floats, as one should not. */
export const floatedMajor = (major: string, currency: string): Money => Money.minor(String(Math.trunc(Number(major) * 100)), currency);

export const floatedQuantity = (text: string): string => Number(text).toFixed(6);

/** Pages as one should not. */
export async function* byOffset(till: Till, filter: PaymentFilter): AsyncGenerator<Payment, void, undefined> {
  for (let offset = 0; ; ) {
    const page = await till.payments.page({ ...filter, limit: 200, offset });
    yield* page.items;
    if ((offset += page.items.length) >= page.total || !page.items.length) return;
  }
}

/** Notes what the shop did beside the transaction. */
export const actOutside = (folder: string, order: string, what: string): Promise<void> => appendFile(join(folder, "outside"), `${order}\t${what}\n`);

/** What the shop did in its transactions and beside them. */
export async function actedOutside(folder: string, acted: Record<string, string[]>): Promise<Record<string, string[]>> {
  const text = await readFile(join(folder, "outside"), "utf8").catch(() => "");
  for (const line of text.split("\n")) {
    const [order, what] = line.split("\t");
    if (order && what) (acted[order] ??= []).push(what);
  }
  return acted;
}
