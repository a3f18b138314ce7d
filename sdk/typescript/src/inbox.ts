import type { Change } from "./change.js";
import { turn, type Core, type TellerOptions } from "./core.js";
import { Refused } from "./error.js";
import type { MoneyValue } from "./money.js";
import * as op from "./operations.gen.js";
import { getWaiting } from "./payments.js";
import { decode, parse, render } from "./json.js";
import { abandoned, brought, isPaid, isUnpaid, needsAttention, paidBesides, type Cursor, type Decision, type Kind, type Row, type Settlement } from "./store.js";
import type { CheckoutSnapshot, Event, Payment, Payout, Refund } from "./types.gen.js";
import type { WebhookError } from "./webhook.js";

/** What a change can be about. @internal */
export type Thing = Payment | Payout | Refund | CheckoutSnapshot;

/** The rank from which the attempt has ended. @internal */
export const rankFinal = 3;

/** Money that comes to a checkout after it had expired wins. */
const ranks: Record<string, number> = { pending: 1, open: 1, processing: 2, success: 3, failed: 3, expired: 3, cancelled: 3, late_success: 4, paid: 4, reversed: 5, overpaid: 5 };

/** Orders the news of one payment, payout, refund or checkout; 0 is no news of an attempt. @internal */
export const rank = (status: string): number => (Object.hasOwn(ranks, status) ? ranks[status]! : 0);

/** The last kind of news that a thing shows by itself. @internal */
export const statusOf = (about: Thing): string => ("state" in about ? (about.overpaid ? "overpaid" : about.state) : about.status);

/** The moment of a timestamp in ms; undefined for every other text. @internal */
export const millis = (timestamp: string | undefined): number | undefined => Date.parse(timestamp ?? "") || undefined;

/** The road of webhooks and the log. Foreign hands over what this store did not make. @internal */
export async function applyEvent<Tx>(core: Core<Tx>, e: Event, cursor?: Cursor, foreign = core.options.foreign): Promise<void> {
  const [noun, status = ""] = e.type.split(/\.(.*)/s) as [string, string?];
  const about = Object.hasOwn(flags, noun) && e.data?.[noun as Kind];
  const { onOther } = core.options;
  if (rank(status) > 0 && about) return apply(core, noun as Kind, status, about, foreign, e, cursor, noun === "checkout" ? onOther : undefined);
  if (!onOther) return;
  await core.store.apply(e.id, "", "", async (tx, subject) => {
    if (subject.seen.includes(e.type)) return { cursor };
    await onOther(e, tx);
    return { subject: { ...subject, seen: [...subject.seen, e.type], sequence: e.sequence ?? 0 }, cursor };
  });
}

/** The road of the sweep: the news is what the payment shows. A status that is not known is not final, and no news. @internal */
export async function applyRead<Tx>(core: Core<Tx>, noun: Kind, about: Thing): Promise<void> {
  const status = "reversed_at" in about && about.reversed_at ? "reversed" : "late_success_at" in about && about.late_success_at ? "late_success" : statusOf(about);
  if (rank(status) > 0) await apply(core, noun, status, about, core.options.foreign);
}

/** What a change says of each kind: there is money, there is none, and it was taken back or paid twice. */
const flags: Record<Kind, string[]> = {
  payment: ["paid", "failed", "takenBack"], payout: ["paidOut", "payoutFailed"], refund: ["refunded", "refundFailed"], checkout: ["paid", "failed", "overpaid"],
};

/** What a change says where nothing else does. @internal */
export const nothing = {
  order: "", reference: "", attempt: 0, late: false, alreadyPaid: false, event_id: "", sequence: 0, problem: "", detail: "", left: null, otherAmount: false, extra: "",
  ...Object.fromEntries(Object.entries(flags).flatMap(([kind, names]) => [[kind, null], ...[...names, "refused", "lapsed", "lost"].map((name) => [name, false])])),
};

function changeOf(noun: Kind, status: string, about: Thing, e?: Event): Change {
  const [money, none, back] = flags[noun];
  const flag = rank(status) === 5 ? back : brought(status) ? money : rank(status) === rankFinal ? none : undefined;
  const spare = status === "overpaid" ? (about as CheckoutSnapshot).asks.find((a) => a.status === "success" && a.payment_id !== (about as CheckoutSnapshot).payment_id)?.payment_id : "";
  return {
    ...nothing, errors: [], kind: `${noun}.${status}`, reference: about.reference ?? "", idempotency_key: (about.idempotency_key ?? "").toLowerCase(), late: status === "late_success" || ("late" in about && about.late),
    extra: spare ?? "",
    event_id: e?.id ?? "", sequence: e?.sequence ?? 0, [noun]: about, ...(flag && { [flag]: true }),
  } as unknown as Change;
}

/**
 * Reads the payment of a refund, if its news was not seen: what is left of it; and whose it is, if this outbox
 * did not make the refund.
 */
async function paymentOf<Tx>(core: Core<Tx>, key: string, status: string, about: Refund): Promise<[MoneyValue | null, owner?: Owner]> {
  let own = false;
  let read = true;
  await core.store.apply(about.id, "refund", key, async (_, known, attempts) => {
    own = attempts.length > 0;
    read = !known.seen.includes(status) && (!own || brought(status));
    return {};
  });
  if (!read) return [null];
  try {
    const p = await getWaiting<Payment>(core.till.caller, op.getPayment, about.payment_id, 0);
    const left = brought(status) && p.refunds ? { value: p.refunds.refundable, currency: p.amount.currency } : null;
    return [left, own ? undefined : await ownerOf(core, p)];
  } catch (e) {
    if (e instanceof Refused && e.code === "payment_not_found") return [null];
    throw e;
  }
}

/** By which row of the outbox the order is found that news is about. */
type Owner = [kind: Kind, key: string];

/** Says whose a payment is that may be an ask of a checkout. A checkout that the service does not know is nobody's. */
async function ownerOf<Tx>({ till }: Core<Tx>, { checkout, idempotency_key }: Payment): Promise<Owner> {
  try {
    if (checkout) return ["checkout", (await till.checkouts.get(checkout.id)).idempotency_key.toLowerCase()];
  } catch (e) {
    if (!(e instanceof Refused && e.code === "checkout_not_found")) throw e;
  }
  return ["payment", idempotency_key.toLowerCase()];
}

/** Where all roads end. In one transaction: lock what is known; stop if this news was seen, or is older than what is known; call the function; save. */
async function apply<Tx>(core: Core<Tx>, noun: Kind, status: string, about: Thing, foreign = false, e?: Event, cursor?: Cursor, notOurs?: TellerOptions<Tx>["onOther"]): Promise<void> {
  const key = (about.idempotency_key ?? "").toLowerCase();
  let left: MoneyValue | null = null;
  let owner: Owner | undefined;
  const ask = "checkout" in about && about.checkout;
  if (ask && status !== "reversed" && !foreign) return; // its checkout tells what became of the order
  if (ask || (noun === "refund" && rank(status) >= rankFinal)) {
    if (cursor) await turn(core); // the log is read without haste
    if (ask) owner = await ownerOf(core, about);
    else [left, owner] = await paymentOf(core, key, status, about as Refund);
  }
  if (status === "overpaid") await apply(core, noun, "paid", about, foreign, e); // it was paid once before, whether or not that was heard
  await core.store.apply(about.id, ...(owner ?? ([noun, key] as const)), async (tx, known, attempts) => {
    const seen = (word: string) => ({ ...known, seen: [...known.seen, word], sequence: Math.max(known.sequence, e?.sequence ?? 0) });
    if (known.seen.includes(status)) return { cursor };
    const change = Object.assign(changeOf(noun, status, about, e), { left });
    let row: Row | undefined;
    let page: Row | undefined; // whose ask it is
    for (const a of attempts)
      if (a.idempotency_key === key) {
        row = a;
        change.order = a.order_id;
        change.attempt = a.attempt;
      } else if (a.idempotency_key === owner?.[1]) {
        change.order = a.order_id;
        if (ask) page = a;
      } else if (noun !== "refund" && isPaid(a)) change.alreadyPaid = true;
    if (!change.order && noun === "checkout" && e && notOurs) {
      await notOurs(e, tx);
      return { subject: seen(status), cursor };
    }
    if ((!change.order && (!foreign || noun === "checkout")) || (page && status !== "reversed")) return { cursor };
    if (row && (await paidBesides(core.store, tx, row))) change.alreadyPaid = true;
    if (change.paid && change.alreadyPaid) change.extra = ("state" in about ? about.payment_id : about.id) ?? "";
    if (row && "state" in about && brought(status) && !wished(row, about)) {
      // It is no end: the row is read until the service shows what was wished for.
      if (known.seen.includes(otherAmount)) return { cursor };
      await core.fn({ ...change, kind: "checkout." + otherAmount, paid: false, overpaid: false, otherAmount: true } as Change, tx);
      return { subject: seen(otherAmount), cursor, settle: { idempotency_key: key, problem: needsAttention, ...(row.remote_id && { state: "taken", next_at: core.now() }) } };
    }
    const subject = seen(status);
    const decision: Decision = { subject, cursor };
    if (rank(status) <= known.rank) return decision;
    subject.rank = rank(status);
    if (row && known.rank < rankFinal && rank(row.status) >= rankFinal && !(isUnpaid(row) && brought(status))) {
      // The attempt ended under another id: a restored service made it again. What it brought before is
      // no news, but money after none is.
      return { ...decision, settle: settlement(core, row, about, row.status) };
    }
    if (row) decision.settle = settlement(core, row, about, status);
    else if (page?.status === "paid") decision.settle = { idempotency_key: page.idempotency_key, status };
    // Nobody had the address of a page that was told to be none.
    if (row?.kind === "checkout" && (row.state === "lapsed" || row.state === "refused") && !brought(status)) return decision;
    if (subject.rank >= rankFinal) await core.fn(change, tx);
    else if (noun !== "checkout") await core.options.onProgress?.(change, tx);
    return decision;
  });
}

const otherAmount = "other_amount";

/** Reports whether a row is a wish for what a checkout shows. */
function wished(row: Row, { amount }: CheckoutSnapshot): boolean {
  const wish = (parse(decode(row.body)) as { amount: MoneyValue }).amount;
  return wish.value === amount.value && wish.currency === amount.currency;
}

/** What a row keeps of a checkout: its address, its return secret, and the payment that paid it. @internal */
export const pageOf = ({ details }: Pick<Row, "details">): { url?: string; return_secret?: string; payment_id?: string } => (details ? (parse(details) as object) : {});

/** What a change does to its row. */
function settlement<Tx>(core: Core<Tx>, row: Row, about: Thing, status: string): Settlement {
  return {
    idempotency_key: row.idempotency_key, remote_id: about.id, status, state: rank(status) >= rankFinal ? "ended" : "taken",
    send_until: millis(about.expires_at), next_at: core.now() + core.openAfter, ...(row.problem === abandoned ? {} : { problem: "", details: "" }),
    ...("state" in about && { details: render({ ...pageOf(row), payment_id: about.payment_id }) }),
  };
}

/** Names the difference of the clocks where an answer of the service told it: most deliveries that are too old are a clock that is wrong. @internal */
export function clockHint(e: WebhookError, skew: number | undefined): string {
  if ((e.code !== "too_old" && e.code !== "too_new") || skew === undefined || Math.abs(skew) < 60_000) return "";
  return `: this machine's clock is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? "behind" : "ahead of"} the service's`;
}
