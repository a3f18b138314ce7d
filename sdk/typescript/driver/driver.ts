import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import {
  AlreadyPaid, AttemptOpen, InvalidWish, Misuse, Money, OrderError, Refused, ReturnError, SweepFailed, Teller, Till, TillError, Unavailable, Unclear, verifyReturn, type Change, type CheckoutChange, type CreatePaymentCharge, type CreateRefund, type Payment, type Progress,
  type RefundChange,
  type Store,
} from "../src/index.js";
import { nodeWebhook } from "../src/node/index.js";
import { actOutside, actedOutside, asksAlone, byOffset, floatedMajor, floatedQuantity, mutants, mutated, mutatedFetch, mutatedStore } from "./mutants.js";

/** A store with the shop's own tables beside it. */
export interface Shop<Tx> {
  store: Store<Tx>;
  update(fn: (tx: Tx) => Promise<void>): Promise<void>;
  /** Notes what the shop did. */
  act(tx: Tx, order: string, what: string): void | Promise<void>;
  acted(): Promise<Record<string, string[]>>;
}

/** One line of the suite. */
export interface Command {
  do: string;
  order: string;
  id: string;
  point: string;
  addr: string;
  mutant: string;
  state: string;
  value: string;
  currency: string;
  major?: string;
  phone: string;
  method: string;
  country: string;
  status?: string;
  quantity?: string;
  kind?: string;
  reason?: CreateRefund["reason"];
  query: string;
  return_url?: string;
  base_url: string;
  key_file: string;
  expect: "test" | "live";
  secrets: string[];
  seconds: number;
  from: number;
  metadata?: Record<string, unknown>;
  options?: Record<string, number> | null;
  n: number;
}

type Result = Record<string, unknown>;

/** Reads commands until there are no more. */
export async function main<Tx>(open: (folder: string) => Promise<Shop<Tx>>): Promise<void> {
  const driver = new Driver(open);
  for await (const line of createInterface({ input: process.stdin })) {
    const result = await driver.do(JSON.parse(line) as Command).catch(told);
    process.stdout.write(JSON.stringify(result ?? {}) + "\n");
  }
  process.exit(0);
}

class Driver<Tx> {
  private shop!: Shop<Tx>;
  private till!: Till;
  private teller!: Teller<Tx>;
  private mutant = "";
  private state = "";
  private armed = ""; // the point at which to die
  private fails = 0; // how often the function is still to fail
  private givesBack = false; // the function gives back what was paid twice
  private booked = new Set<string>(); // refunds, by order and amount, as one should not
  private server: Server | undefined;

  constructor(private readonly open: (folder: string) => Promise<Shop<Tx>>) {}

  async do(c: Command): Promise<Result | void> {
    switch (c.do) {
      case "new": return this.start(c);
      case "collect": case "payout": return this.write(c);
      case "refund": return this.refund(c);
      case "checkout": return this.checkout(c);
      case "come_back": return this.comeBack(c);
      case "open_checkouts": return this.openCheckouts(c);
      case "give_back": return this.giveBack(c);
      case "send":
        if (c.kind === "refund") return this.sendRefund(c.order);
        if (c.kind === "checkout") return this.sendCheckout(c.order);
        return sent(await (c.kind === "payout" ? this.teller.sendPayOut(c.order) : this.teller.send(c.order)));
      case "resend": return sent(await this.teller.resend(c.order));
      case "withdraw": return this.teller.withdraw(c.order);
      case "abandon": return this.teller.abandon(c.order);
      case "wait": return this.wait(c);
      case "sweep": return this.sweep();
      case "buy": return this.buy(c);
      case "run": return void this.teller.run().catch((e: unknown) => console.error(e));
      case "serve": return this.serve(c);
      case "crash_at": return void (this.armed = c.point);
      case "fail": return void (this.fails = c.n);
      case "acted": return { acted: await actedOutside(this.state, await this.shop.acted()) };
      case "list": return this.list(c);
      case "cancel": return this.cancel(c);
      case "get": {
        const raw = await this.till.payments.get(c.id);
        return { status: raw.status, raw };
      }
      case "create_key": return void (await this.till.apiKeys.create({ name: "suite" }));
    }
    return { error: "no such command" };
  }

  /** Opens the store and makes client and teller. */
  private async start(c: Command): Promise<void> {
    const ms = (name: string, otherwise: number) => c.options?.[name] ?? otherwise;
    if (c.mutant && !mutants.includes(c.mutant)) throw new Error("no such mutant");
    [this.mutant, this.state, this.givesBack] = [c.mutant, c.state, ms("give_back", 0) !== 0];
    this.shop = await this.open(c.mutant === "key_not_stored" ? join(c.state, `forgotten-${process.pid}`) : c.state);
    const apiKey = async () => {
      if (ms("key_wait", 0)) await pause(ms("key_wait", 0));
      return (await readFile(c.key_file, "utf8")).trim();
    };
    this.till = new Till({
      baseUrl: c.base_url, apiKey, expect: c.expect, deadline: ms("deadline", 20_000), tryTimeout: ms("try_timeout", 3000), tries: ms("tries", 5),
      fetch: mutatedFetch(this.mutant, (point) => this.crash(point)),
    });
    const store = mutatedStore(this.shop.store, this.mutant, (point) => this.crash(point));
    this.teller = new Teller(this.till, store, (change, tx) => this.onChange(change, tx), {
      sendUntil: { payment: ms("send_until", 600_000), payout: ms("send_until", 86_400_000) }, lookAfter: ms("look_after", 60_000), openAfter: ms("open_after", 120_000),
      now: () => Date.now() + ms("clock", 0), foreign: ms("foreign", 0) !== 0 || this.mutant === "foreign_handed_over" || asksAlone(this.mutant),
      from: ms("from_end", 0) === 0 || this.mutant === "history_shipped" ? "start" : "end",
    });
    await this.shop.store.install();
  }

  /** Ends the program at once if it is to die here. */
  private crash(point: string): void {
    if (this.armed !== point) return;
    process.kill(process.pid, "SIGKILL");
    for (;;);
  }

  /** Writes a wish beside an order, in one transaction. */
  private async write(c: Command): Promise<void> {
    const { order, method, country, phone, metadata } = c;
    const float = this.mutant === "float_amount";
    const amount = c.major ? (float ? floatedMajor(c.major, c.currency) : Money.major(c.major, c.currency)) : { value: c.value, currency: c.currency };
    const charge: CreatePaymentCharge | undefined = c.quantity
      ? { items: [{ name: "thing", quantity: float ? floatedQuantity(c.quantity) : c.quantity, unit_price: "0", total: "0" }] }
      : undefined;
    await this.shop.update((tx) => {
      if (c.do === "payout") return this.teller.payOut(tx, { order, method, country, amount, phone });
      return this.teller.collect(tx, { order, method, country, amount, phone, metadata, charge });
    });
    this.crash("after_write");
  }

  /** Writes a wish to give a payment back; without a value, all that is left. */
  private async refund({ order, reason, value, currency }: Command): Promise<void> {
    await this.shop.update((tx) => this.teller.refund(tx, { order, reason, amount: value ? { value, currency } : undefined }));
    this.crash("after_write");
  }

  /** Writes a wish to be paid on a page. With a phone, no other one may pay. */
  private async checkout({ order, value, currency, phone, return_url }: Command): Promise<void> {
    await this.shop.update((tx) => this.teller.checkout(tx, { order, amount: { value, currency }, return_url, ...(phone && { phone, phone_fixed: true }) }));
    this.crash("after_write");
  }

  /** Makes the page, and tells where it is. */
  private async sendCheckout(order: string): Promise<Result> {
    const p = await this.teller.sendCheckout(order);
    return { ...sent(p), url: p.url ?? "", page: !!p.url && !!p.return_secret };
  }

  /** Writes and makes pages for many orders, as customers do who go to the till. */
  private async openCheckouts(c: Command): Promise<void> {
    await each(c, async (_, order) => {
      try {
        await this.checkout({ ...c, order });
        await this.teller.sendCheckout(order);
      } catch (e) {
        if (!(e instanceof AlreadyPaid)) throw e;
      }
    });
  }

  /** Verifies the way back of a customer, with what is kept with the order. */
  private async comeBack({ order, query }: Command): Promise<Result> {
    const { id, return_secret } = await this.teller.sendCheckout(order);
    return { state: await verifyReturn(return_secret ?? "", id ?? "", new URLSearchParams(query)) };
  }

  /** Sends a refund; and books it already, as one should not. */
  private async sendRefund(order: string): Promise<Result> {
    const p = await this.teller.sendRefund(order);
    if (this.mutant === "refund_booked_on_202" && p.refund) await this.shop.update(async (tx) => this.shop.act(tx, order, "refunded " + p.refund!.amount.value));
    return sent(p);
  }

  /** Writes and sends many orders, eight at a time, as customers do. */
  private async buy(c: Command): Promise<void> {
    await each(c, async (_, order) => {
      try {
        await this.write({ ...c, do: "collect", order });
        await this.teller.send(order);
      } catch (e) {
        if (!(e instanceof AlreadyPaid)) throw e; // a customer who clicks again
      }
    });
  }

  /** Writes and sends refunds of every second order: all of it, or a part. A refund that was written before it was killed is not written again. */
  private async giveBack(c: Command): Promise<void> {
    await each(c, async (i, order) => {
      if (i % 2 !== 0) return;
      if (!(await this.shop.store.newest("refund", order))) await this.refund({ ...c, order, value: i % 4 === 0 ? "" : c.value });
      await this.teller.sendRefund(order);
    });
  }

  private async wait({ kind, order, seconds }: Command): Promise<Result> {
    const ms = seconds * 1000;
    if (kind === "checkout") return { status: (await this.teller.waitCheckout(order, ms)).state };
    const about = kind === "payout" ? this.teller.waitPayOut(order, ms) : kind === "refund" ? this.teller.waitRefund(order, ms) : this.teller.wait(order, ms);
    return { status: (await about).status };
  }

  /** The shop's one function. */
  private async onChange(c: Change, tx: Tx): Promise<void> {
    if (this.misheard(c)) return;
    const order = c.order || "foreign " + c.reference;
    if (this.fails-- > 0) throw new Error("the shop's function fails");
    let what = c.kind.replaceAll(".", " ");
    if (c.paid) what = c.alreadyPaid ? "give back" : "paid";
    if (c.checkout) what = onPage(c, what);
    else if (c.failed) what = "failed";
    else if (c.takenBack) what = "taken back";
    else if (c.paidOut) what = "paid out";
    else if (c.payoutFailed) what = "payout failed";
    else if (c.refunded) what = `refunded ${c.refund.amount.value} left ${c.left?.value ?? "?"}`;
    else if (c.refundFailed) what = "refund failed";
    else if (c.refused || c.lapsed || c.lost) what = [c.kind.split(".")[1], ...c.errors.map((e) => e.pointer)].join(" ");
    if (c.lapsed && this.mutant === "lapse_forgotten") return;
    if (c.refunded && this.misbooked(c as RefundChange)) return;
    this.crash("in_function");
    if (this.givesBack && (c.overpaid || (c.paid && c.alreadyPaid))) await this.teller.refund(tx, { order: c.order, payment: c.extra, reason: "duplicate" });
    if (this.mutant === "function_outside") await actOutside(this.state, order, what);
    else await this.shop.act(tx, order, what);
  }

  /** Reports whether a mistake keeps the shop from booking a refund. */
  private misbooked(c: RefundChange): boolean {
    if (this.mutant === "refund_booked_on_202") return true;
    const sum = `${c.order} ${c.refund.amount.value}`;
    const booked = this.booked.has(sum);
    this.booked.add(sum);
    return booked && this.mutant === "refund_booked_by_amount";
  }

  /** Makes the mistakes about asks: it ships on each that succeeds and not on the checkout, takes one that fails for the end of the order, or forgets what was paid twice. True if the change is not heard. */
  private misheard(c: Change): boolean {
    if (this.mutant === "overpaid_forgotten") return c.overpaid;
    if (!asksAlone(this.mutant)) return false;
    const ships = this.mutant === "ask_shipped";
    if (c.checkout) return c.paid && ships;
    c.order ||= c.reference;
    return (c.paid && !ships) || (c.failed && ships);
  }

  private async sweep(): Promise<Result> {
    let error: unknown;
    const report = await this.teller.sweep().catch((e: unknown) => {
      if (!(e instanceof SweepFailed)) throw e;
      error = e.errors[0];
      return e.report;
    });
    const { sent, waiting, applied, open } = report;
    const attention = Object.fromEntries(report.attention.map((a) => [a.order, a.state]));
    return { sent, waiting, applied, read: open, attention, ...(error ? told(error) : {}) };
  }

  private async cancel(c: Command): Promise<Result> {
    if (c.kind === "checkout") {
      const { id } = await this.teller.sendCheckout(c.order);
      return { status: (await this.till.checkouts.cancel(id!)).state };
    }
    const { items } = await this.till.payouts.page({ reference: c.order });
    if (!items[0]) throw new OrderError("no_attempt", c.order);
    return { status: (await this.till.payouts.cancel(items[0].id)).status };
  }

  /** Receives webhooks. */
  private async serve(c: Command): Promise<void> {
    this.server?.closeAllConnections();
    this.server?.close();
    const [host, port] = c.addr.split(":");
    this.server = createServer(mutated(this.mutant, c.secrets, nodeWebhook(this.teller, ...c.secrets)));
    await new Promise<void>((resolve, reject) => this.server!.once("error", reject).listen(Number(port), host, resolve));
  }

  /** Goes through all payments, and tells which come twice. */
  private async list(c: Command): Promise<Result> {
    const seen = new Map<string, number>();
    const filter = { ...(c.status ? { status: c.status } : {}), ...(c.kind === "asc" ? { order: "asc" as const } : {}) };
    const each: AsyncIterable<Payment> = this.mutant === "offset_paging" ? byOffset(this.till, filter) : this.till.payments.all(filter);
    for await (const p of each) {
      seen.set(p.id, (seen.get(p.id) ?? 0) + 1);
      if (c.n > 0 && seen.size % c.n === 0) await pause(20); // somebody reads slowly
    }
    return { count: seen.size, twice: [...seen.values()].reduce((sum, n) => sum + n - 1, 0), ids: [...seen.keys()] };
  }
}

/** Does something for many orders, eight at a time. */
async function each(c: Command, work: (i: number, order: string) => Promise<void>): Promise<void> {
  let i = 0;
  const errors: unknown[] = [];
  const worker = async () => {
    while (i < c.n) {
      const n = c.from + i++;
      await work(n, `b-${n}`).catch((e: unknown) => errors.push(e));
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  if (errors.length) throw errors[0];
}

/** What the shop notes of a checkout. */
function onPage(c: CheckoutChange, what: string): string {
  if (c.paid) return what === "paid" && c.late ? "paid late" : what;
  return c.overpaid ? "paid twice" : c.otherAmount ? "other amount" : c.kind.split(".")[1]!;
}

/** The result of a send. */
function sent(p: Progress): Result {
  return { state: p.state, replayed: p.replayed ?? false, ...(p.error ? { why: told(p.error)["error"] } : {}) };
}

/** Puts an error into one word, with its code. */
function told(e: unknown): Result {
  const text = e instanceof Error ? e.message : String(e);
  if (e instanceof InvalidWish) return { error: "invalid", member: e.member, text };
  if (e instanceof AttemptOpen || e instanceof AlreadyPaid || (e instanceof OrderError && ["still_open", "may_have_arrived", "not_paid"].includes(e.code))) return { error: e.code, text };
  if (e instanceof ReturnError) return { error: e.code, text };
  if (e instanceof Misuse && e.code === "wrong_mode") return { error: e.code, text };
  if (!(e instanceof TillError)) return { error: "other", text };
  const error = e instanceof Refused ? "refused" : e instanceof Unavailable ? "unavailable" : e instanceof Unclear ? "unclear" : "other";
  return { error, code: e.code, status: e.status, retry_after: e.retry_after, tries: e.tries, detail: e.detail, pointers: e.errors.map((f) => f.pointer), text };
}
