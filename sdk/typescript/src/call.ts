import { Misuse, Refused, TillError, Unavailable, Unclear, type Failure } from "./error.js";
import { decode, parse, readAll } from "./json.js";
import type { Operation } from "./operation.js";
import { apiVersion, version } from "./operations.gen.js";
import type { Problem } from "./types.gen.js";

/** One call with its values. @internal */
export interface Request {
  op: Operation;
  /** Of the path, in order. */
  params?: string[];
  query?: Query;
  /** Rendered once; every try sends the same bytes. */
  body?: Uint8Array<ArrayBuffer>;
  accept?: string;
  /** The idempotency key, for errors. */
  key?: string;
  /** The service may take this long on purpose, in ms. */
  wait?: number;
  signal?: AbortSignal | undefined;
  /** Takes an answer that is not read at once. Watch limits one read of it, until what it returns is called. */
  stream?: (body: ReadableStream<Uint8Array>, watch: () => () => void) => Promise<void>;
}

/** @internal */
export type Query = Record<string, string | number | Date | undefined>;

/** One request, for whoever measures. */
export interface Try {
  method: string;
  route: string;
  /** 0 if there was no answer. */
  status: number;
  /** Why there was no good one. */
  reason: string;
  /** In ms, as is the delay before it. */
  duration: number;
  request_id: string;
  delay: number;
}

/** Why there was no complete answer; "" for a complete one. @internal */
export type Reason = "" | "timeout" | "cancelled" | "certificate" | "unreachable" | "reset" | "cut" | "not_json" | "too_large" | "redirect" | "connection";

/** What came of one request. @internal */
export interface Tried {
  status: number;
  headers: Headers;
  /** The answer, read. */
  value?: unknown;
  problem?: Problem;
  reason: Reason;
  /** A byte may have been written. */
  sent: boolean;
  /** In ms. */
  retryAfter: number;
  cause?: unknown;
}

/** Reports whether the failure may go away by itself. @internal */
export function passing(t: Tried): boolean {
  if (t.reason) return !["certificate", "cancelled", "too_large", "redirect"].includes(t.reason);
  return [408, 429, 500, 502, 503, 504].includes(t.status);
}

/** @internal */
export const repeatable = (op: Operation, t: Tried): boolean => passing(t) && (op[2] !== "never" || !t.sent);

/** How long to wait before repeat n, counted from 0, in ms. Random is between 0 and 1. @internal */
export function delay(n: number, retryAfter: number, random: number): number {
  return Math.max(Math.min(8000, 250 * 2 ** n) * (0.5 + random / 2), retryAfter + (retryAfter * random) / 4);
}

const nothingHappened = ["method_unavailable", "payouts_held"];

/** Reports whether the request may have been done although its answer does not say so. @internal */
export function unanswered(t: Tried): boolean {
  if (!t.sent || t.reason === "redirect") return false;
  return t.reason !== "" || t.status === 408 || (t.status >= 500 && !nothingHappened.includes(t.problem?.code ?? ""));
}

/** What one answer says about a call. Look is: refused, if a read by the key finds nothing. @internal */
export type Verdict = "done" | "refused" | "unavailable" | "unclear" | "look";

/**
 * The table of outcomes. Before tells whether an earlier try had no answer: what was asked may exist
 * then, whatever this answer says.
 *
 * @internal
 */
export function judge(op: Operation, t: Tried, before: boolean): Verdict {
  const { status, reason } = t;
  const code = t.problem?.code ?? "";
  if (!reason && status >= 200 && status < 300) return "done";
  const heard = !reason || reason === "redirect";
  if (op[0] === "GET") return heard && status >= 300 && status < 500 && status !== 408 && status !== 429 ? "refused" : "unavailable";
  const unless = (v: Verdict): Verdict => (before ? "unclear" : v);
  if (!t.sent) return unless("unavailable");
  if (!heard) return "unclear";
  if (status === 429 || (status === 503 && nothingHappened.includes(code))) return unless("unavailable");
  if (status === 422 && code === "idempotency_key_reused") return "refused";
  if (status === 408 || status >= 500) return "unclear";
  if (op[2] !== "key") return "refused"; // the answer to a repeat is as good as the first
  if ([400, 413, 415, 422].includes(status)) return before ? "look" : "refused";
  return unless("refused");
}

/** What a problem names. @internal */
export const named = (p: Partial<Problem>) => Object.fromEntries(["payment_id", "payout_id", "refund_id", "refundable"].map((m) => [m, p[m as "refundable"] ?? ""])) as Pick<Failure, "payment_id" | "payout_id" | "refund_id" | "refundable">;

/** Makes the error of a verdict. @internal */
export function failure(v: Verdict, t: Tried, key: string, tries: number): TillError {
  const p: Partial<Problem> = t.problem ?? {};
  const f: Failure = {
    code: p.code ?? "", status: t.status, detail: p.detail ?? "", errors: p.errors ?? [], request_id: t.headers.get("X-Request-Id") ?? p.request_id ?? "",
    retry_after: t.retryAfter / 1000, idempotency_key: key, tries, reason: t.reason, ...named(p),
  };
  return new (v === "unavailable" ? Unavailable : v === "unclear" ? Unclear : Refused)(f, t.cause);
}

/** A call that ended without its answer. Look: what is refused if nothing exists stays unclear for a caller that does not look. @internal */
export class Ended {
  constructor(readonly verdict: Verdict, readonly tried: Tried, readonly key: string, readonly tries: number) {}
  error(v: Verdict = this.verdict === "look" ? "unclear" : this.verdict): TillError {
    return failure(v, this.tried, this.key, this.tries);
  }
}

/** Bounds an answer: 200 payments with all they may hold. */
const maxAnswer = 32 << 20;
/** Bounds what a header can ask for, in ms. */
const maxRetryAfter = 24 * 3600_000;

/** The moment of an HTTP date in ms; NaN for every other text. */
const moment = (text: string | null): number => (/^[A-Z][a-z]+,? .*:\d\d( GMT| \d{4})$/.test(text ?? "") ? Date.parse(text!.replace(/( GMT)?$/, " GMT")) : NaN);

/** Reads the header, in seconds or as a date. A date is held against the date of the answer, so that a wrong clock of ours does not matter. @internal */
export function retryAfter(h: Headers, now: number): number {
  const text = (h.get("Retry-After") ?? "").trim();
  const ms = /^[+-]?[0-9]+$/.test(text) && Math.abs(Number(text)) < 2 ** 31 ? Number(text) * 1000 : moment(text) - (moment(h.get("Date")) || now);
  return Math.min(Math.max(ms || 0, 0), maxRetryAfter);
}

/** Puts an error of the network into one word, because its text may name addresses; and whether a byte may have been written. Only what proves that there was no connection proves that none was. */
function networkReason(e: unknown): [Reason, boolean] {
  type Coded = { code?: string; syscall?: string; cause?: Coded; errors?: Coded[] };
  let c = e as Coded;
  if (c?.cause) c = c.cause;
  const { code = "", syscall } = { ...c?.errors?.[0], ...(c?.code ? { code: c.code } : {}), ...(c?.syscall ? { syscall: c.syscall } : {}) };
  if (/CERT|SELF_SIGNED|UNABLE_TO_/.test(code)) return ["certificate", false];
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ConnectionRefused)$/.test(code)) return ["unreachable", false];
  if (/TIMEDOUT|TIMEOUT/.test(code)) return ["timeout", syscall !== "connect" && !code.includes("CONNECT")];
  if (syscall === "connect") return ["connection", false];
  return [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(code) ? "reset" : "connection", true];
}

/** Waits; false if the signal ended it. @internal */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<boolean>;

/** @internal */
export const sleep: Sleep = (ms, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve(false);
    const stop = () => (clearTimeout(timer), resolve(false));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", stop), resolve(true)), ms);
    signal?.addEventListener("abort", stop, { once: true });
  });

/** The budget of repeats: when a service is ill, clients that all try five times keep it so. */
const [maxTokens, repeatCost, timeoutCost] = [100, 5, 10];

/** Makes calls and repeats them. @internal */
export class Caller {
  tokens = maxTokens;
  /** How far the service's clock is ahead of ours, in ms, if an answer told. */
  skew: number | undefined;
  /** The service reads a payment at once only. */
  noLongPoll = false;
  sleep = sleep;
  random: () => number = Math.random;

  constructor(
    readonly base: string,
    readonly key: () => string | Promise<string>,
    readonly expect: string | undefined,
    readonly fetch: typeof globalThis.fetch,
    readonly deadline: number,
    readonly tryTimeout: number,
    readonly tries: number,
    readonly onTry: ((t: Try) => void) | undefined,
  ) {}

  /** Asks for the key, and refuses one that cannot be right. */
  async apiKey(): Promise<string> {
    const key = await this.key();
    if (!key) throw new Misuse("no_key");
    if (!/^[!-~]+$/.test(key)) throw new Misuse("bad_key");
    if (this.expect && !key.startsWith(`till_${this.expect}_`)) throw new Misuse("wrong_mode");
    return key;
  }

  /** The key, if it is another one now. */
  async newKey(old: string): Promise<string> {
    const key = await this.apiKey().catch(() => old);
    return key === old ? "" : key;
  }

  success(): void {
    this.tokens = Math.min(maxTokens, this.tokens + 1);
  }

  /** Makes a call, and repeats it as the table of repeats allows. It returns why it ended without an answer. */
  async call(r: Request): Promise<Tried | Ended> {
    const end = Date.now() + this.deadline + (r.wait ?? 0);
    let before = false;
    let asked = false;
    let waited = 0;
    let key = await this.apiKey();
    for (let n = 1; ; n++) {
      const t = await this.try(r, key, waited, end);
      const v = judge(r.op, t, before);
      if (v === "done") {
        this.success();
        return t;
      }
      if (before && t.status === 404 && r.op[0] === "DELETE") return t; // the try without an answer did it
      if (t.status === 401 && !asked) {
        asked = true;
        const again = await this.newKey(key);
        if (again) {
          key = again;
          continue;
        }
      }
      const ended = new Ended(v, t, r.key ?? "", n);
      before ||= unanswered(t);
      if (n >= this.tries || !repeatable(r.op, t)) return ended;
      waited = delay(n - 1, t.retryAfter, this.random());
      const cost = t.reason === "timeout" ? timeoutCost : repeatCost;
      if (Date.now() + waited > end || this.tokens < cost) return ended;
      this.tokens -= cost;
      if (!(await this.sleep(waited, r.signal))) return ended;
    }
  }

  /** Makes a call and returns its answer, or throws. */
  async read<A>(r: Request): Promise<A> {
    const t = await this.call(r);
    if (t instanceof Ended) throw t.error();
    return t.value as A;
  }

  /** Makes one request, before an end. */
  async try(r: Request, key: string, waited = 0, end = Infinity): Promise<Tried> {
    const began = Date.now();
    const t: Tried = { status: 0, headers: new Headers(), reason: "", sent: true, retryAfter: 0 };
    const control = new AbortController();
    const abort = () => control.abort();
    const timer = setTimeout(abort, Math.max(Math.min(this.tryTimeout + (r.wait ?? 0), end - began), 0));
    const watch = () => {
      const idle = setTimeout(abort, this.tryTimeout);
      return () => clearTimeout(idle);
    };
    // A stream takes as long as it takes, but no pause of it is longer than a try.
    const stream = r.stream && ((body: ReadableStream<Uint8Array>) => (clearTimeout(timer), r.stream!(body, watch)));
    r.signal?.addEventListener("abort", abort, { once: true });
    if (r.signal?.aborted) {
      t.reason = "cancelled";
      t.sent = false;
    } else await this.exchange(r, key, t, control.signal, stream);
    if (t.reason && control.signal.aborted && t.reason !== "too_large") t.reason = "timeout";
    if (t.reason && r.signal?.aborted) {
      t.reason = "cancelled";
      t.cause = r.signal.reason;
    }
    clearTimeout(timer);
    r.signal?.removeEventListener("abort", abort);
    this.onTry?.({ method: r.op[0], route: r.op[1], status: t.status, reason: t.reason, duration: Date.now() - began, request_id: t.headers.get("X-Request-Id") ?? "", delay: waited });
    return t;
  }

  private async exchange(r: Request, key: string, t: Tried, signal: AbortSignal, stream?: (body: ReadableStream<Uint8Array>) => Promise<void>): Promise<void> {
    let res: Response;
    try {
      res = await this.fetch.call(globalThis, this.address(r), {
        method: r.op[0], headers: headers(r, key), body: r.body ?? null, redirect: "manual", signal,
      });
    } catch (e) {
      [t.reason, t.sent] = networkReason(e);
      return;
    }
    t.status = res.status;
    t.headers = res.headers;
    const date = moment(res.headers.get("Date"));
    if (date) this.skew = date - Math.floor(Date.now() / 1000) * 1000;
    t.retryAfter = retryAfter(res.headers, Date.now());
    try {
      if (stream && t.status === 200) return await stream(res.body!);
      const body = await readAll(res.body, maxAnswer);
      if (!body) t.reason = "too_large";
      else if (res.type === "opaqueredirect" || (t.status >= 300 && t.status < 400)) t.reason = "redirect";
      else understand(r.op, t, decode(body), key);
    } catch {
      t.reason = "cut"; // the error may show a part of the body
    }
  }

  /** The address of a try. */
  address(r: Request): string {
    let n = 0;
    const path = r.op[1].replace(/\{[^}]*\}/g, () => encodeURIComponent(r.params![n++]!));
    const query = new URLSearchParams();
    for (const [name, v] of Object.entries(r.query ?? {})) if (v !== undefined && v !== "") query.set(name, v instanceof Date ? v.toISOString() : String(v));
    return this.base + path + (query.size ? "?" + query : "");
  }
}

/** Reads an answer. JSON of something else, as a portal sends it, is no answer to a read: lists have items, all else has an id, and who the key is has the key's. */
function understand(op: Operation, t: Tried, text: string, key: string): void {
  if (t.status === 204) return;
  // A refusal that holds the API key repeats the request, as some proxies do. Its texts would bring the key into logs.
  if (t.status >= 400 && text.includes(key)) return;
  try {
    t.value = parse(text);
  } catch {
    if (t.status < 400) t.reason = "not_json";
    return;
  }
  const answer = Object(t.value) as Partial<Problem> & { id?: unknown; key_id?: unknown; items?: unknown };
  if (t.status >= 400) {
    if (answer.code && typeof answer.code === "string") t.problem = answer as Problem;
  } else if (op[0] === "GET" && !(/}$|me$/.test(op[1]) ? answer.id ?? answer.key_id : Array.isArray(answer.items))) t.reason = "not_json";
}

function headers(r: Request, key: string): Record<string, string> {
  return {
    "X-Api-Key": key,
    "User-Agent": `till-sdk-typescript/${version} (api ${apiVersion})`,
    Accept: r.accept ?? "application/json",
    ...(r.body ? { "Content-Type": "application/json" } : {}),
  };
}
