import { ApiKeys } from "./apikeys.js";
import { Caller, type Try } from "./call.js";
import { Checkouts } from "./checkouts.js";
import { Misuse } from "./error.js";
import { Events } from "./events.js";
import { getMe } from "./operations.gen.js";
import { PaymentMethods } from "./paymentmethods.js";
import { Payments, type CallOptions } from "./payments.js";
import { Payouts } from "./payouts.js";
import { Refunds } from "./refunds.js";
import { Sandbox } from "./sandbox.js";
import { Transactions } from "./transactions.js";
import type { Me } from "./types.gen.js";
import { Wallets } from "./wallets.js";
import { WebhookEndpoints } from "./webhookendpoints.js";

/** What a client is made of. Times are in milliseconds. */
export interface TillOptions {
  /** The address that you were given with your key; it ends in /v1. */
  baseUrl: string | undefined;
  /** The key, or a function that is asked for each call, so that a new key needs no restart, and once more after a 401. */
  apiKey: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Refuses keys of the other mode: "live" in production, "test" elsewhere. */
  expect?: "live" | "test";
  /** How long a call may take in all, 30 000 otherwise. */
  deadline?: number;
  /** How long one request may take, 10 000 otherwise. */
  tryTimeout?: number;
  /** How many requests one call may make, 5 otherwise. */
  tries?: number;
  /** What carries the requests. */
  fetch?: typeof globalThis.fetch;
  /** Allows http:// to other machines, where anybody can read the key. */
  plainHttp?: boolean;
  /** Is told about every request, for whoever measures. Nothing is logged otherwise. */
  onTry?: (t: Try) => void;
}

/** Makes calls. One per program is enough. */
export class Till {
  readonly payments: Payments;
  readonly payouts: Payouts;
  readonly refunds: Refunds;
  readonly checkouts: Checkouts;
  readonly events: Events;
  readonly webhooks: WebhookEndpoints;
  readonly paymentMethods: PaymentMethods;
  readonly wallets: Wallets;
  readonly transactions: Transactions;
  readonly apiKeys: ApiKeys;
  readonly sandbox: Sandbox;
  /** @internal */
  readonly caller: Caller;

  constructor(options: TillOptions) {
    const { baseUrl = "", apiKey, expect, deadline = 30_000, tryTimeout = 10_000, tries = 5, fetch = globalThis.fetch, plainHttp = false, onTry } = options;
    if ("document" in globalThis) throw new Misuse("in_a_page");
    if (!apiKey) throw new Misuse("no_key");
    if (!(deadline > 0 && tryTimeout > 0 && tries >= 1) || (expect !== undefined && expect !== "live" && expect !== "test")) throw new Misuse("bad_option");
    const key = typeof apiKey === "function" ? async () => (await apiKey()) ?? "" : () => apiKey;
    const caller = new Caller(address(baseUrl, plainHttp), key, expect, fetch, deadline, tryTimeout, tries, onTry);
    this.caller = caller;
    this.payments = new Payments(caller);
    this.payouts = new Payouts(caller);
    this.refunds = new Refunds(caller);
    this.checkouts = new Checkouts(caller);
    this.events = new Events(caller);
    this.webhooks = new WebhookEndpoints(caller);
    this.paymentMethods = new PaymentMethods(caller);
    this.wallets = new Wallets(caller);
    this.transactions = new Transactions(caller);
    this.apiKeys = new ApiKeys(caller);
    this.sandbox = new Sandbox(caller);
  }

  /** Whose key this is, what it may do, and where the service is reached. */
  me(options: CallOptions = {}): Promise<Me> {
    return this.caller.read<Me>({ op: getMe, signal: options.signal });
  }

  /** How far the service's clock is ahead of this machine's, in ms, if an answer has told. */
  clockSkew(): number | undefined {
    return this.caller.skew;
  }
}

function address(text: string, plainHttp: boolean): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new Misuse("bad_base_url");
  }
  const here = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  const good = url.protocol === "https:" || (url.protocol === "http:" && (plainHttp || here));
  if (!good || /[@?#]/.test(text)) throw new Misuse("bad_base_url");
  return text.replace(/\/+$/, "");
}
