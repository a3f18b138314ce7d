import type { Change, News } from "./change.js";
import type { Core } from "./core.js";
import { abandoned, isPaid, isUnpaid, type Cursor, type Decision, type Kind, type Row, type Settlement } from "./store.js";
import type { Event, Payment, Payout } from "./types.gen.js";
import type { WebhookError } from "./webhook.js";

/** The rank from which the attempt has ended. @internal */
export const rankFinal = 3;

const ranks: Record<string, number> = { pending: 1, processing: 2, success: 3, failed: 3, expired: 3, cancelled: 3, late_success: 4, reversed: 5 };

/** Orders the news of one payment or payout; 0 is no news of an attempt. @internal */
export const rank = (status: string): number => (Object.hasOwn(ranks, status) ? ranks[status]! : 0);

/** The moment of a timestamp in ms; undefined for every other text. @internal */
export const millis = (timestamp: string | undefined): number | undefined => Date.parse(timestamp ?? "") || undefined;

/** The road of webhooks and the log. @internal */
export async function applyEvent<Tx>(core: Core<Tx>, e: Event, cursor?: Cursor): Promise<void> {
  const [noun, status = ""] = e.type.split(/\.(.*)/s) as [string, string?];
  const about = noun === "payment" ? e.data?.payment : noun === "payout" ? e.data?.payout : undefined;
  if (rank(status) > 0 && about) return apply(core, noun as Kind, status, about, e, cursor);
  const { onOther } = core.options;
  if (!onOther) return;
  await core.store.apply(e.id, "", "", async (tx, subject) => {
    if (subject.seen.includes(e.type)) return { cursor };
    await onOther(e, tx);
    return { subject: { ...subject, seen: [...subject.seen, e.type], sequence: e.sequence ?? 0 }, cursor };
  });
}

/** The road of the sweep: the news is what the payment shows. A status that is not known is not final, and no news. @internal */
export async function applyRead<Tx>(core: Core<Tx>, noun: Kind, about: Payment | Payout): Promise<void> {
  const status = "reversed_at" in about && about.reversed_at ? "reversed" : about.late_success_at ? "late_success" : about.status;
  if (rank(status) > 0) await apply(core, noun, status, about);
}

function changeOf(noun: Kind, status: string, about: Payment | Payout, e?: Event): Change {
  const news: News = {
    kind: `${noun}.${status}`, order: "", reference: about.reference ?? "", attempt: 0, idempotency_key: (about.idempotency_key ?? "").toLowerCase(),
    late: status === "late_success", alreadyPaid: false, event_id: e?.id ?? "", sequence: e?.sequence ?? 0,
  };
  const good = status === "success" || status === "late_success";
  if (noun === "payout") return { ...news, payment: null, payout: about as Payout, paid: false, failed: false, takenBack: false, paidOut: good, payoutFailed: status === "failed" || status === "cancelled" };
  const failed = status === "failed" || status === "expired";
  return { ...news, payment: about as Payment, payout: null, paid: good, failed, takenBack: status === "reversed", paidOut: false, payoutFailed: false };
}

/** Where all roads end. In one transaction: lock what is known; stop if this news was seen, or is older than what is known; call the function; save. */
async function apply<Tx>(core: Core<Tx>, noun: Kind, status: string, about: Payment | Payout, e?: Event, cursor?: Cursor): Promise<void> {
  const key = (about.idempotency_key ?? "").toLowerCase();
  await core.store.apply(about.id, noun, key, async (tx, known, attempts) => {
    if (known.seen.includes(status)) return { cursor };
    const change = changeOf(noun, status, about, e);
    let row: Row | undefined;
    for (const a of attempts)
      if (a.idempotency_key === key) {
        row = a;
        change.order = a.order_id;
        change.attempt = a.attempt;
      } else if (isPaid(a)) change.alreadyPaid = true;
    const subject = { ...known, seen: [...known.seen, status], sequence: Math.max(known.sequence, change.sequence) };
    const decision: Decision = { subject, cursor };
    if (rank(status) <= known.rank) return decision;
    subject.rank = rank(status);
    if (row && known.rank < rankFinal && rank(row.status) >= rankFinal && !(isUnpaid(row) && (status === "success" || status === "late_success"))) {
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
function settlement<Tx>(core: Core<Tx>, row: Row, about: Payment | Payout, status: string): Settlement {
  return {
    idempotency_key: row.idempotency_key, remote_id: about.id, status, state: rank(status) >= rankFinal ? "ended" : "taken",
    send_until: millis(about.expires_at), next_at: core.now() + core.openAfter, ...(row.problem === abandoned ? {} : { problem: "" }),
  };
}

/** Names the difference of the clocks where an answer of the service told it: most deliveries that are too old are a clock that is wrong. @internal */
export function clockHint(e: WebhookError, skew: number | undefined): string {
  if ((e.code !== "too_old" && e.code !== "too_new") || skew === undefined || Math.abs(skew) < 60_000) return "";
  return `: this machine's clock is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? "behind" : "ahead of"} the service's`;
}
