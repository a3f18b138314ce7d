import { Ended, type Caller, type Query, type Request, type Tried } from "./call.js";
import { Misuse, Refused, TillError } from "./error.js";
import { encode, render } from "./json.js";
import type { Operation } from "./operation.js";
import * as op from "./operations.gen.js";
import { all } from "./page.js";
import type { AttemptList, CreatePayment, EventList, Payment, PaymentPage, PaymentStatus } from "./types.gen.js";

/** What every call takes last. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** Narrows a list; what is absent does not. Both dates are inclusive. */
export interface PaymentFilter {
  status?: PaymentStatus;
  method?: string;
  from_date?: string | Date;
  to_date?: string | Date;
  reference?: string;
  idempotency_key?: string;
  provider_reference?: string;
  /** Newest first otherwise. */
  order?: "asc" | "desc";
}

/** Narrows one page. */
export type Paged<F> = F & { limit?: number; offset?: number };

/** The calls about payments. */
export class Payments {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** Asks a customer for money. The key must be stored before: `Teller` does that. The answer is not final. */
  create(p: CreatePayment, options: CallOptions = {}): Promise<Payment> {
    return create<Payment>(this.caller, op.createPayment, op.listPayments, p, options);
  }

  get(id: string, options: CallOptions = {}): Promise<Payment> {
    return this.caller.read<Payment>({ op: op.getPayment, params: [id], signal: options.signal });
  }

  /** Lists payments, newest first, with their total. */
  page(filter: Paged<PaymentFilter> = {}, options: CallOptions = {}): Promise<PaymentPage> {
    return this.caller.read<PaymentPage>({ op: op.listPayments, query: { ...filter }, signal: options.signal });
  }

  /** Goes through all payments that match, each once, whatever changes meanwhile. */
  all(filter: PaymentFilter = {}, options: CallOptions = {}): AsyncGenerator<Payment, void, undefined> {
    return all({ ...filter }, (query: Query) => this.page(query as PaymentFilter, options));
  }

  /** Lists the calls to the operator. */
  attempts(id: string, options: CallOptions = {}): Promise<AttemptList> {
    return this.caller.read<AttemptList>({ op: op.listPaymentAttempts, params: [id], signal: options.signal });
  }

  events(id: string, options: CallOptions = {}): Promise<EventList> {
    return this.caller.read<EventList>({ op: op.listPaymentEvents, params: [id], signal: options.signal });
  }
}

/** What a create makes: a payment or a payout. @internal */
export interface Created {
  id: string;
  idempotency_key: string;
}

/** Posts a body with a key. If a try without an answer leaves open what happened, it finds by the key what the body has made, where there is a list that does. @internal */
export async function create<A extends Created>(caller: Caller, post: Operation, list: Operation | undefined, body: { idempotency_key: string }, options: CallOptions): Promise<A> {
  const key = body.idempotency_key;
  if (!key) throw new Misuse("no_idempotency_key");
  const t = await caller.call({ op: post, body: encode(render(body)), key, signal: options.signal });
  if (!(t instanceof Ended)) {
    if (madeBy(t, key)) return t.value as A;
    throw new Ended("unclear", t, key, 1).error();
  }
  if (t.verdict !== "look" || !list) throw t.error();
  const found = await byKey<A>(caller, list, key, options.signal).catch(() => {
    throw t.error("unclear");
  });
  if (!found) throw t.error("refused");
  return found;
}

/** Reports whether an answer is what the key made. JSON of something else, as a portal sends it, is no answer. @internal */
export function madeBy(t: Tried, key: string): boolean {
  const made = t.value as Created | null | undefined;
  if (made && typeof made === "object" && made.id && same(made.idempotency_key, key)) return true;
  t.reason = "not_json";
  return false;
}

const same = (a: string | undefined, b: string): boolean => a?.toLowerCase() === b.toLowerCase();

/** Finds what a key made; undefined if there is nothing. @internal */
export async function byKey<A extends Created>(caller: Caller, list: Operation, key: string, signal?: AbortSignal): Promise<A | undefined> {
  const page = await caller.read<{ items: A[] }>({ op: list, query: { idempotency_key: key }, signal });
  return page.items.find((p) => same(p.idempotency_key, key));
}

/** Reads one thing, and lets the service wait for a change where it can. A service that does not know the parameter says so once, and is not asked again. @internal */
export async function getWaiting<A>(caller: Caller, get: Operation, id: string, wait: number, signal?: AbortSignal): Promise<A> {
  const r: Request = { op: get, params: [id], signal };
  if (wait < 1000 || caller.noLongPoll) return caller.read<A>(r);
  try {
    return await caller.read<A>({ ...r, wait, query: { wait: Math.floor(wait / 1000) } });
  } catch (e) {
    if (!(e instanceof Refused && (e as TillError).code === "invalid_parameter")) throw e;
    caller.noLongPoll = true;
    return caller.read<A>(r);
  }
}
