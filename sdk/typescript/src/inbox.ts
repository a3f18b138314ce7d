import type { Change } from "./change.js";
import { turn, type Core } from "./core.js";
import { Refused } from "./error.js";
import type { MoneyValue } from "./money.js";
import * as op from "./operations.gen.js";
import { getWaiting } from "./payments.js";
import { abandoned, isPaid, isUnpaid, type Cursor, type Decision, type Kind, type Row, type Settlement } from "./store.js";
import type { Event, Payment, Payout, Refund } from "./types.gen.js";
import type { WebhookError } from "./webhook.js";

/** What a change can be about. @internal */
export type Thing = Payment | Payout | Refund;

/** The rank from which the attempt has ended. @internal */
export const rankFinal = 3;

const ranks: Record<string, number> = { pending: 1, processing: 2, success: 3, failed: 3, expired: 3, cancelled: 3, late_success: 4, reversed: 5 };

/** Orders the news of one payment, payout or refund; 0 is no news of an attempt. @internal */
export const rank = (status: string): number => (Object.hasOwn(ranks, status) ? ranks[status]! : 0);

/** Reports whether money moved. */
const good = (status: string): boolean => status === "success" || status === "late_success";

/** The moment of a timestamp in ms; undefined for every other text. @internal */
export const millis = (timestamp: string | undefined): number | undefined => Date.parse(timestamp ?? "") || undefined;

/** The road of webhooks and the log. Foreign hands over what this store did not make. @internal */
export async function applyEvent<Tx>(core: Core<Tx>, e: Event, cursor?: Cursor, foreign = core.options.foreign): Promise<void> {
  const [noun, status = ""] = e.type.split(/\.(.*)/s) as [string, string?];
  const about = Object.hasOwn(flags, noun) && e.data?.[noun as Kind];
  if (rank(status) > 0 && about) return apply(core, noun as Kind, status, about, foreign, e, cursor);
  const { onOther } = core.options;
  if (!onOther) return;
  await core.store.apply(e.id, "", "", async (tx, subject) => {
    if (subject.seen.includes(e.type)) return { cursor };
    await onOther(e, tx);
    return { subject: { ...subject, seen: [...subject.seen, e.type], sequence: e.sequence ?? 0 }, cursor };
  });
}

/** The road of the sweep: the news is what the payment shows. A status that is not known is not final, and no news. @internal */
export async function applyRead<Tx>(core: Core<Tx>, noun: Kind, about: Thing): Promise<void> {
  const status = "reversed_at" in about && about.reversed_at ? "reversed" : about.late_success_at ? "late_success" : about.status;
  if (rank(status) > 0) await apply(core, noun, status, about, core.options.foreign);
}

/** What a change says of each kind: there is money, there is none, and it was taken back. */
const flags: Record<Kind, string[]> = { payment: ["paid", "failed", "takenBack"], payout: ["paidOut", "payoutFailed"], refund: ["refunded", "refundFailed"] };

/** What a change says where nothing else does. @internal */
export const nothing = {
  order: "", reference: "", attempt: 0, late: false, alreadyPaid: false, event_id: "", sequence: 0, problem: "", detail: "", left: null,
  ...Object.fromEntries(Object.entries(flags).flatMap(([kind, names]) => [[kind, null], ...[...names, "refused", "lapsed", "lost"].map((name) => [name, false])])),
};

function changeOf(noun: Kind, status: string, about: Thing, e?: Event): Change {
  const [money, none, back] = flags[noun];
  const flag = good(status) ? money : status === "reversed" ? back : rank(status) === rankFinal ? none : undefined;
  return {
    ...nothing, errors: [], kind: `${noun}.${status}`, reference: about.reference ?? "", idempotency_key: (about.idempotency_key ?? "").toLowerCase(), late: status === "late_success",
    event_id: e?.id ?? "", sequence: e?.sequence ?? 0, [noun]: about, ...(flag && { [flag]: true }),
  } as unknown as Change;
}

/**
 * Reads the payment of a refund, if its news was not seen: what is left of it; and whose it is, if this outbox
 * did not make the refund.
 */
async function paymentOf<Tx>(core: Core<Tx>, key: string, status: string, about: Refund): Promise<[MoneyValue | null, owner?: string]> {
  let own = false;
  let read = true;
  await core.store.apply(about.id, "refund", key, async (_, known, attempts) => {
    own = attempts.length > 0;
    read = !known.seen.includes(status) && (!own || good(status));
    return {};
  });
  if (!read) return [null];
  try {
    const p = await getWaiting<Payment>(core.till.caller, op.getPayment, about.payment_id, 0);
    const left = good(status) && p.refunds ? { value: p.refunds.refundable, currency: p.amount.currency } : null;
    return [left, own ? undefined : p.idempotency_key.toLowerCase()];
  } catch (e) {
    if (e instanceof Refused && e.code === "payment_not_found") return [null];
    throw e;
  }
}

/** Where all roads end. In one transaction: lock what is known; stop if this news was seen, or is older than what is known; call the function; save. */
async function apply<Tx>(core: Core<Tx>, noun: Kind, status: string, about: Thing, foreign = false, e?: Event, cursor?: Cursor): Promise<void> {
  const key = (about.idempotency_key ?? "").toLowerCase();
  let left: MoneyValue | null = null;
  let owner: string | undefined;
  if (noun === "refund" && rank(status) >= rankFinal) {
    if (cursor) await turn(core); // the log is read without haste
    [left, owner] = await paymentOf(core, key, status, about as Refund);
  }
  await core.store.apply(about.id, owner ? "payment" : noun, owner ?? key, async (tx, known, attempts) => {
    if (known.seen.includes(status)) return { cursor };
    const change = Object.assign(changeOf(noun, status, about, e), { left });
    let row: Row | undefined;
    for (const a of attempts)
      if (a.idempotency_key === key) {
        row = a;
        change.order = a.order_id;
        change.attempt = a.attempt;
      } else if (a.idempotency_key === owner) change.order = a.order_id;
      else if (noun !== "refund" && isPaid(a)) change.alreadyPaid = true;
    if (!change.order && !foreign) return { cursor };
    const subject = { ...known, seen: [...known.seen, status], sequence: Math.max(known.sequence, change.sequence) };
    const decision: Decision = { subject, cursor };
    if (rank(status) <= known.rank) return decision;
    subject.rank = rank(status);
    if (row && known.rank < rankFinal && rank(row.status) >= rankFinal && !(isUnpaid(row) && good(status))) {
      // The attempt ended under another id: a restored service made it again. What it brought before is
      // no news, but money after none is.
      return { ...decision, settle: settlement(core, row, about, row.status) };
    }
    if (row) decision.settle = settlement(core, row, about, status);
    if (subject.rank >= rankFinal) await core.fn(change, tx);
    else await core.options.onProgress?.(change, tx);
    return decision;
  });
}

/** What a change does to its row. */
function settlement<Tx>(core: Core<Tx>, row: Row, about: Thing, status: string): Settlement {
  return {
    idempotency_key: row.idempotency_key, remote_id: about.id, status, state: rank(status) >= rankFinal ? "ended" : "taken",
    send_until: millis(about.expires_at), next_at: core.now() + core.openAfter, ...(row.problem === abandoned ? {} : { problem: "", details: "" }),
  };
}

/** Names the difference of the clocks where an answer of the service told it: most deliveries that are too old are a clock that is wrong. @internal */
export function clockHint(e: WebhookError, skew: number | undefined): string {
  if ((e.code !== "too_old" && e.code !== "too_new") || skew === undefined || Math.abs(skew) < 60_000) return "";
  return `: this machine's clock is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? "behind" : "ahead of"} the service's`;
}
