import { Misuse } from "./error.js";
import { concat, decode, encode, parse } from "./json.js";
import type { Event } from "./types.gen.js";

export type WebhookErrorCode = "missing_header" | "bad_signature" | "too_old" | "too_new" | "too_large" | "malformed";

/** Says why a delivery is not believed, in one word. */
export class WebhookError extends Error {
  override name = "WebhookError";
  /** Skew: with too_old and too_new, how far its time is from ours, in seconds. */
  constructor(
    readonly code: WebhookErrorCode,
    readonly skew = 0,
  ) {
    super("till: webhook: " + code);
  }
}

/** A header is missing, or is no time. */
export class MissingHeader extends WebhookError {
  override name = "MissingHeader";
  constructor() {
    super("missing_header");
  }
}

/** None of the secrets signed this. */
export class BadSignature extends WebhookError {
  override name = "BadSignature";
  constructor() {
    super("bad_signature");
  }
}

/** It was signed more than five minutes ago, or our clock is ahead. */
export class TooOld extends WebhookError {
  override name = "TooOld";
  constructor(skew: number) {
    super("too_old", skew);
  }
}

/** It was signed more than five minutes from now, or our clock is behind. */
export class TooNew extends WebhookError {
  override name = "TooNew";
  constructor(skew: number) {
    super("too_new", skew);
  }
}

/** Headers as frameworks have them: with `get`, or an object. */
export type HeadersLike = { get(name: string): string | null | undefined } | { [name: string]: string | string[] | undefined };

/** In seconds. */
const tolerance = 300;
/** @internal */
export const maxDelivery = 1 << 20;
const maxSignatures = 16;

/** Base64 as it is written, to its last bit; undefined for every other text. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const binary = atob(text);
    if (btoa(binary) === text) return Uint8Array.from(binary, (c) => c.charCodeAt(0));
  } catch {}
  return undefined;
}

async function readSecret(text: string) {
  const secret = typeof text === "string" && text.startsWith("whsec_") ? fromBase64(text.slice(6)) : undefined;
  if (!secret || secret.length < 24 || secret.length > 64) throw new Misuse("bad_secret");
  return crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function header(h: HeadersLike, name: string): string {
  if (typeof h.get === "function") return (h.get(name) as string | null) ?? "";
  const found = Object.entries(h).find(([n]) => n.toLowerCase() === name)?.[1];
  return (Array.isArray(found) ? found[0] : (found as string | undefined)) ?? "";
}

/**
 * Returns the event of a delivery if one of the secrets signed it within five minutes of now. Body is the
 * bytes as they came, before anything parsed them. Signatures are looked at before the age, so that a
 * stranger learns nothing about the clock. Comparing takes the same time for all of them.
 */
export async function verify(secrets: string | readonly string[], headers: HeadersLike, body: Uint8Array, now: number = Date.now()): Promise<Event> {
  const list = [secrets].flat();
  if (!list.length) throw new Misuse("bad_secret");
  const [id, stamp, given] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((n) => header(headers, n)) as [string, string, string];
  if (!id || !stamp || !given) throw new MissingHeader();
  if (body.length > maxDelivery) throw new WebhookError("too_large");
  if (!/^(0|[1-9][0-9]{0,11})$/.test(stamp)) throw new MissingHeader();
  const signed = concat(encode(`${id}.${stamp}.`), body);
  const signatures = given.split(/\s+/).filter(Boolean).slice(0, maxSignatures);
  let good = false;
  for (const text of list) {
    const secret = await readSecret(text);
    for (const s of signatures) {
      const bytes = s.startsWith("v1,") ? fromBase64(s.slice(3)) : undefined;
      if (bytes && (await crypto.subtle.verify("HMAC", secret, bytes, signed))) good = true;
    }
  }
  if (!good) throw new BadSignature();
  const skew = Number(stamp) - now / 1000;
  if (skew < -tolerance) throw new TooOld(skew);
  if (skew > tolerance) throw new TooNew(skew);
  let event: Event | null;
  try {
    event = parse(decode(body)) as Event | null;
  } catch {
    throw new WebhookError("malformed");
  }
  if (!event || typeof event.id !== "string" || typeof event.type !== "string" || !event.id || !event.type) throw new WebhookError("malformed");
  return event;
}
