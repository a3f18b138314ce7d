import type { Till } from "./client.js";
import type { Change } from "./change.js";
import type { Core, Report, TellerOptions } from "./core.js";
import { Misuse } from "./error.js";
import { clockHint, applyEvent, pageOf } from "./inbox.js";
import { readAll, encode, render } from "./json.js";
import { checkMinor, type Money, type MoneyValue } from "./money.js";
import { put, sendOrder, settle, type Progress } from "./outbox.js";
import { OrderError, type InvalidMember, InvalidWish } from "./ordererror.js";
import type { CallOptions } from "./payments.js";
import { abandoned, isOpen, isPaid, withdrawn, type Row, type Settlement, type Store } from "./store.js";
import { run, sweep, wait } from "./sweep.js";
import type { Checkout, CreateCheckout, CreatePaymentCharge, CreatePaymentTax, CreateRefund, Event, Payment, Payout, Refund } from "./types.gen.js";
import { maxDelivery, verify, WebhookError, type HeadersLike } from "./webhook.js";

/** A wish to pay somebody. */
export interface PayOut {
  /** Your id of what is paid out. */
  order: string;
  method: string;
  country?: string | undefined;
  amount: Money | MoneyValue;
  /** Digits only; see `Phone.read`. */
  phone: string;
  /** The order if absent. */
  reference?: string | undefined;
  description?: string | undefined;
  metadata?: { [member: string]: unknown } | undefined;
}

/** A wish to be paid. */
export interface Collect extends PayOut {
  name?: string | undefined;
  email?: string | undefined;
  charge?: CreatePaymentCharge | undefined;
  tax?: CreatePaymentTax | undefined;
}

/** A wish to be paid on a page of the service, by any number and any of your methods. */
export interface CheckoutWish extends Pick<CreateCheckout, "expires_in_seconds" | "country" | "methods" | "phone" | "phone_fixed" | "return_url" | "language" | "charge" | "tax"> {
  /** Your id of what is paid. */
  order: string;
  amount: Money | MoneyValue;
  /** The order if absent. The page shows it. */
  reference?: string | undefined;
  /** The page shows it. */
  description?: string | undefined;
  metadata?: { [member: string]: unknown } | undefined;
}

/** A wish to give a payment back, all of it or a part, to who paid it. */
export interface GiveBack {
  /** Your id of what was paid. */
  order: string;
  /** The id of the payment, as `change.extra`; needed only if the order was paid more than once. */
  payment?: string | undefined;
  /** All that is left if absent. */
  amount?: Money | MoneyValue | undefined;
  reason?: CreateRefund["reason"] | undefined;
  /** The order if absent. */
  reference?: string | undefined;
  description?: string | undefined;
  metadata?: { [member: string]: unknown } | undefined;
}

/** An answer to a delivery. */
export interface Received {
  status: number;
  /** One word for what is not believed, and a hint. */
  text: string;
}

/**
 * Collects, opens checkouts, pays out, refunds, listens and sweeps. It is a client, a store and one function of yours. The function
 * is called once for each change of an attempt, inside a transaction of the store. If it fails, nothing is
 * saved and the change comes again. What does not roll back, as mail, belongs into a queue that it writes in
 * the transaction.
 */
export class Teller<Tx> {
  private readonly core: Core<Tx>;

  constructor(till: Till, store: Store<Tx>, fn: (change: Change, tx: Tx) => void | Promise<void>, options: TellerOptions<Tx> = {}) {
    const { sendUntil, lookAfter = 60_000, openAfter = 120_000, cursor = "events", now = Date.now } = options;
    const payout = sendUntil?.payout ?? 86_400_000;
    const payment = sendUntil?.payment ?? 600_000;
    const until = { payment, payout, refund: payout, checkout: payment };
    this.core = { till, store, fn, options, until, lookAfter, openAfter, cursor, now: () => Math.trunc(now()), pace: 0 };
  }

  /**
   * Writes a wish in your transaction, beside the order, with its key and the bytes that will be sent. It
   * makes no call. The same wish again while the attempt is open changes nothing: a double click is one
   * payment.
   */
  async collect(tx: Tx, c: Collect): Promise<void> {
    check(c, true);
    const { name, email, charge, tax } = c;
    await put(this.core, tx, "payment", c.order, body(c, { customer: { phone: c.phone, name, email }, charge, tax }));
  }

  /**
   * Writes a wish to be paid on a page in your transaction, like collect. An order is asked for in one way at a time:
   * while a payment or another checkout of it may bring money, that is refused. `sendCheckout` makes the page.
   */
  async checkout(tx: Tx, c: CheckoutWish): Promise<void> {
    check({ ...c, phone: c.phone ?? (c.phone_fixed ? "" : undefined) } as Partial<PayOut>, false, true);
    const { order, amount, reference, description, metadata, ...rest } = c;
    await put(this.core, tx, "checkout", order, body({ order, amount, reference, description, metadata }, rest));
  }

  /** Writes a wish to pay somebody in your transaction, like collect. */
  async payOut(tx: Tx, p: PayOut): Promise<void> {
    check(p, true);
    await put(this.core, tx, "payout", p.order, body(p, { recipient: { phone: p.phone } }));
  }

  /**
   * Writes a wish to give a payment back in your transaction, like collect. The order must be paid, and no
   * refund of it may be open: the same wish again is refused, too, because two refunds of the same sum may be
   * meant.
   */
  async refund(tx: Tx, r: GiveBack): Promise<void> {
    check(r);
    let id = r.payment;
    if (!id) {
      const { store } = this.core;
      const [paid, more] = [...(await store.attempts(tx, "payment", r.order)), ...(await store.attempts(tx, "checkout", r.order))].filter(isPaid);
      if (!paid) throw new OrderError("not_paid", r.order);
      if (more || paid.status === "overpaid") throw new InvalidWish("payment", "is missing: the order was paid more than once");
      id = paid.kind === "checkout" ? pageOf(paid).payment_id : paid.remote_id;
    }
    await put(this.core, tx, "refund", r.order, body(r, { payment_id: id, reason: r.reason }));
  }

  /**
   * Posts the newest attempt of an order, and repeats it within the deadline of a call. What is not settled
   * then is sent again by run or sweep. It throws a `Refused`, or an error of the store; a lost answer is no
   * error.
   */
  send(order: string, options: CallOptions = {}): Promise<Progress> {
    return sendOrder(this.core, "payment", order, options.signal);
  }

  sendPayOut(order: string, options: CallOptions = {}): Promise<Progress> {
    return sendOrder(this.core, "payout", order, options.signal);
  }

  sendRefund(order: string, options: CallOptions = {}): Promise<Progress> {
    return sendOrder(this.core, "refund", order, options.signal);
  }

  /**
   * Makes the page of the newest checkout of an order, like send. Send the customer to the `url` of the answer. Once it is
   * taken the same call answers from the store, with the same address and the same return secret.
   */
  sendCheckout(order: string, options: CallOptions = {}): Promise<Progress> {
    return sendOrder(this.core, "checkout", order, options.signal);
  }

  /**
   * Sends what is not sent, and reads the payment until its status is final, at most for so many
   * milliseconds: then it throws `StillOpen`. Your function has been called when it returns.
   */
  wait(order: string, ms: number, options: CallOptions = {}): Promise<Payment> {
    return wait(this.core, "payment", order, ms, options.signal) as Promise<Payment>;
  }

  waitPayOut(order: string, ms: number, options: CallOptions = {}): Promise<Payout> {
    return wait(this.core, "payout", order, ms, options.signal) as Promise<Payout>;
  }

  waitRefund(order: string, ms: number, options: CallOptions = {}): Promise<Refund> {
    return wait(this.core, "refund", order, ms, options.signal) as Promise<Refund>;
  }

  /** Waits until it is paid, expired or cancelled. */
  waitCheckout(order: string, ms: number, options: CallOptions = {}): Promise<Checkout> {
    return wait(this.core, "checkout", order, ms, options.signal) as Promise<Checkout>;
  }

  /** The newest attempt to be paid for an order, by a number or on a page. */
  private async latest(order: string): Promise<Row | undefined> {
    const row = await this.core.store.newest("payment", order);
    const page = await this.core.store.newest("checkout", order);
    return page && !(row && row.created_at >= page.created_at) ? page : row;
  }

  /** Ends an attempt of which provably nothing arrived, for example to offer another method. */
  async withdraw(order: string): Promise<void> {
    const row = await this.latest(order);
    if (!row) throw new OrderError("no_attempt", order);
    if (!(await settle(this.core, row, { from: ["written"], state: "lapsed", problem: withdrawn }))) throw new OrderError("may_have_arrived", order);
  }

  /** Lets a new attempt begin beside one that is stuck. The old one is sent no more, but it may still bring money: `change.alreadyPaid` tells it then. */
  async abandon(order: string): Promise<void> {
    const row = await this.latest(order);
    if (!row || !isOpen(row)) throw new OrderError("not_stuck", order);
    const unsent = row.state === "sending" || row.state === "written";
    const s: Omit<Settlement, "idempotency_key"> = unsent ? { from: ["written", "sending"], send_until: this.core.now() } : { from: ["taken", "lost"] };
    if (!(await settle(this.core, row, { ...s, problem: abandoned }))) throw new OrderError("other_write", order);
  }

  /** Posts an attempt again that the service lost with a restored backup. The operator recognises it. M-Pesa does not: look at its statement first. */
  async resend(order: string, options: CallOptions = {}): Promise<Progress> {
    const { now, until } = this.core;
    const row = await this.latest(order);
    const again = row?.state === "lost" && (await settle(this.core, row, { from: ["lost"], state: "sending", next_at: now(), send_until: now() + until.payment }));
    if (!again) throw new OrderError("not_lost", order);
    return sendOrder(this.core, row.kind, order, options.signal);
  }

  /**
   * Does all that is due, once: it sends, reads the event log to its end, reads what is open for long, and
   * lists what needs a person. Call it from cron, or use run. One failure does not stop the rest; then it
   * throws a `SweepFailed` with the report and all errors.
   */
  sweep(options: CallOptions = {}): Promise<Report> {
    return sweep(this.core, options.signal);
  }

  /** Does the same all the time, until the signal ends it: it waits for the log by long poll, and looks at the outbox every second. */
  run(options: CallOptions = {}): Promise<void> {
    return run(this.core, options.signal);
  }

  /**
   * Receives deliveries, for everything that has a Request and a Response: `export const POST = teller.webhook(secret)`.
   * Give the old secret too while a rotation lasts. It answers 204 when your function has been called or the
   * news was old, 400 with one word for what is not believed, and 500 if your function failed: then the
   * delivery comes again.
   */
  webhook(...secrets: (string | undefined)[]): (request: Request) => Promise<Response> {
    return async (request) => {
      const answer = ({ status, text }: Received, headers = {}) => new Response(text || null, { status, headers });
      if (request.method !== "POST") return answer({ status: 405, text: "post" }, { Allow: "POST" });
      if (request.bodyUsed) return answer({ status: 500, text: "body_was_read: give the Till webhook the request before anything reads its body" });
      let bytes: Uint8Array | null;
      try {
        bytes = await readAll(request.body, maxDelivery);
      } catch {
        return answer({ status: 400, text: "cut" });
      }
      return answer(bytes ? await this.receive(secrets, request.headers, bytes) : { status: 400, text: "too_large" });
    };
  }

  /** Takes a delivery from any framework: its headers, and the bytes of its body as they came. */
  async receive(secrets: string | readonly (string | undefined)[], headers: HeadersLike, body: Uint8Array): Promise<Received> {
    let event: Event;
    try {
      event = await verify([secrets].flat().filter(Boolean) as string[], headers, body, this.core.now());
    } catch (e) {
      if (e instanceof Misuse) return { status: 500, text: "no secret" };
      if (e instanceof WebhookError) return { status: 400, text: e.code + clockHint(e, this.core.till.clockSkew()) };
      throw e;
    }
    try {
      await applyEvent(this.core, event);
    } catch (e) {
      this.core.options.onReport?.({}, e);
      return { status: 500, text: "not done" };
    }
    return { status: 204, text: "" };
  }
}

/** Renders the body of a create for a key. */
function body(w: Partial<PayOut>, rest: object): (key: string) => Uint8Array {
  const { method, country, amount, reference, order, description, metadata } = w;
  return (key) => {
    const sum = amount && { value: amount.value, currency: amount.currency };
    const all = { method, country, amount: sum, idempotency_key: key, ...rest, reference: reference || order, description, metadata };
    return encode(render(all));
  };
}

/** What the service takes, checked before a row is written that it would refuse. */
const [maxOrder, maxReference, maxDescription, maxAmount] = [128, 128, 255, 15];

/** Checks a wish; one to whom money is asked for or sent has a method, an amount and a phone. */
function check(w: Partial<PayOut>, someone = false, amount = someone): void {
  const must = (ok: boolean, member: InvalidMember, problem: string) => {
    if (!ok) throw new InvalidWish(member, problem);
  };
  const text = (v: unknown) => typeof v === "string" && v !== "";
  const length = (text: string | undefined) => [...(text ?? "")].length;
  must(text(w.order) && encode(w.order!).length <= maxOrder, "order", "has 1 to 128 bytes");
  must(!someone || text(w.method), "method", "is missing");
  if (amount || w.amount) {
    const { value, currency } = w.amount!;
    try {
      checkMinor(value, currency);
    } catch (e) {
      if (e instanceof TypeError) throw e; // a float
      must(false, "amount", "is digits in minor units of a currency");
    }
    must(value !== "0" && value.length <= maxAmount, "amount", "is more than nothing and has at most 15 digits");
  }
  must((!someone && w.phone === undefined) || /^[0-9]{1,15}$/.test(w.phone!), "phone", "is digits only, calling code first");
  must(length(w.description) <= maxDescription && length(w.reference) <= maxReference, "description or reference", "is too long");
  try {
    if (w.metadata) render(w.metadata, "", false);
  } catch {
    must(false, "metadata", "is no JSON");
  }
}
