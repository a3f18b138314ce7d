import { encode } from "./json.js";

/**
 * What the way back from a checkout's page says: `open` is that an ask may still bring money, or that the customer
 * turned back; `closed` is expired or cancelled.
 */
export type ReturnState = "paid" | "open" | "closed";

/** `no_secret` is a mistake of the program. */
export type ReturnErrorCode = "no_secret" | "unsigned" | "altered" | "too_old" | "too_new";

/** Says why a way back is not believed, in one word. */
export class ReturnError extends Error {
  override name = "ReturnError";
  constructor(readonly code: ReturnErrorCode) {
    super("till: return: " + code);
  }
}

/** A query as frameworks have it: its text, with `get`, or an object. */
export type QueryLike = string | { get(name: string): string | null | undefined } | { [name: string]: unknown };

/** In seconds, either way. */
const tolerance = 600;

/**
 * Returns what the way back says of a checkout, if the checkout's `return_secret` signed it within ten minutes of now.
 * Checkout is the id that you keep with the order, query that of the address to which the customer came back. It is a
 * hint for the page that you show: ship by the event `checkout.paid`, or by a read of the checkout. Who kept the
 * address can come again within those minutes. Comparing takes the same time for all of them.
 */
export async function verifyReturn(secret: string, checkout: string, query: QueryLike, now: number = Date.now()): Promise<ReturnState> {
  const values = typeof query === "string" ? new URLSearchParams(query) : query;
  const [id, state, at, given] = ["checkout", "state", "time", "signature"].map((name) => {
    const value: unknown = typeof values.get === "function" ? values.get("till_" + name) : (values as { [name: string]: unknown })["till_" + name];
    return typeof value === "string" ? value : "";
  }) as [string, string, string, string];
  if (!secret) throw new ReturnError("no_secret");
  if (!state || !at || !given) throw new ReturnError("unsigned");
  const key = await crypto.subtle.importKey("raw", encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const signed = encode(`return\n${checkout}\n${state}\n${at}`);
  const text = given.replace(/-/g, "+").replace(/_/g, "/") + "=";
  let good = false;
  if (/^[A-Za-z0-9_-]{43}$/.test(given) && btoa(atob(text)) === text) good = await crypto.subtle.verify("HMAC", key, Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), signed);
  if (!good || id !== checkout || !/^[0-9]{1,12}$/.test(at)) throw new ReturnError("altered");
  const age = now / 1000 - Number(at);
  if (age > tolerance) throw new ReturnError("too_old");
  if (age < -tolerance) throw new ReturnError("too_new");
  return state as ReturnState;
}
