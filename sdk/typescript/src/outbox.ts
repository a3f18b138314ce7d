import type { EndedChange } from "./change.js";
import { delay, failure, judge, named, passing, type Request, type Tried } from "./call.js";
import type { Core } from "./core.js";
import { Refused, Unclear, type TillError } from "./error.js";
import { applyRead, millis, nothing, pageOf, rank, rankFinal, statusOf, type Thing } from "./inbox.js";
import { decode, parse, render } from "./json.js";
import type { Operation } from "./operation.js";
import * as op from "./operations.gen.js";
import { AlreadyPaid, AttemptOpen, OrderError } from "./ordererror.js";
import { byKey, madeBy } from "./payments.js";
import { abandoned, besides, isOpen, isPaid, paidBesides, stale, type Kind, type Row, type Settlement, type State } from "./store.js";
import type { Checkout, FieldError, NewCheckout, Payment, Payout, Refund } from "./types.gen.js";

/** When run sends a wish that nobody called send for, in ms. */
const firstDue = 1000;

/** Writes an attempt, unless the order has one that stands in the way. @internal */
export async function put<Tx>(core: Core<Tx>, tx: Tx, kind: Kind, order: string, body: (key: string) => Uint8Array): Promise<void> {
  for (let n = 0; n < 3; n++) {
    let attempt = 1;
    for (const row of await besides(core.store, tx, kind, order)) {
      if (isPaid(row)) throw new AlreadyPaid(order);
      if (isOpen(row)) throw new AttemptOpen(order, row.state, new Date(row.send_until));
    }
    for (const row of await core.store.attempts(tx, kind, order)) {
      attempt = row.attempt + 1;
      const refund = kind === "refund";
      if (isPaid(row) && !refund) throw new AlreadyPaid(order);
      if (isOpen(row)) {
        if (!refund && same(body(row.idempotency_key), row.body)) return; // a double click; of refunds another one of the same sum may well be meant
        throw new AttemptOpen(order, row.state, new Date(row.send_until));
      }
    }
    const key = crypto.randomUUID();
    const now = core.now();
    const fresh = await core.store.put(tx, {
      idempotency_key: key, kind, order_id: order, attempt, body: body(key), state: "written", tries: 0, next_at: now + firstDue, lease: 0,
      send_until: now + core.until[kind], remote_id: "", status: "", problem: "", created_at: now, details: "",
    });
    if (fresh) return;
  }
  throw new OrderError("other_write", order);
}

/** Compares two bodies by what they say, numbers by their digits. */
function same(a: Uint8Array, b: Uint8Array): boolean {
  const sorted = (v: unknown): unknown =>
    Array.isArray(v) ? v.map(sorted) : v && Object.getPrototypeOf(v) === Object.prototype ? Object.fromEntries(Object.entries(v).sort(([x], [y]) => (x < y ? -1 : 1)).map(([k, e]) => [k, sorted(e)])) : v;
  const canonical = (bytes: Uint8Array) => render(sorted(parse(decode(bytes))));
  return canonical(a) === canonical(b);
}

/** How far an attempt got. */
export interface Progress {
  /**
   * - `taken`: the service has it.
   * - `later`: the service cannot take it now; nothing exists; it is sent again.
   * - `unclear`: not known yet; say "check your phone" all the same.
   * - `lapsed`: it was not sent in its time; nothing exists.
   * - `lost`: the service had it, or of a payout or refund may have had it, and does not know it: a person looks.
   */
  state: "taken" | "later" | "unclear" | "lapsed" | "lost";
  /** Of the payment, payout, refund or checkout, once taken. */
  id?: string;
  /** As the service answered, if it just did. */
  payment?: Payment;
  payout?: Payout;
  refund?: Refund;
  checkout?: Checkout;
  replayed?: boolean;
  /** Of a checkout, once taken: send the customer there. */
  url?: string;
  /** Of a checkout, once taken: for `verifyReturn`. */
  return_secret?: string;
  /** An `Unavailable` or `Unclear`, for the log. */
  error?: unknown;
}

/** @internal */
export async function sendOrder<Tx>(core: Core<Tx>, kind: Kind, order: string, signal?: AbortSignal): Promise<Progress> {
  const row = await core.store.newest(kind, order);
  if (!row) throw new OrderError("no_attempt", order);
  return send(core, row, core.till.caller.tries, signal);
}

/** How long send leaves a row to another worker that is sending it, in ms. After that both may: the key makes it one payment. */
const waitForOther = 1000;
/** How long after the deadline of a try, of which nobody told the end, the next one is due. */
const leaseGrace = 1000;

/** Reports whether somebody seems to be sending a row just now. */
const inFlight = (r: Row, now: number): boolean => r.state === "sending" && now < r.lease && r.next_at === r.lease + leaseGrace;

/** Makes tries until the row is settled, or time or tries are over. @internal */
export async function send<Tx>(core: Core<Tx>, row: Row, tries: number, signal?: AbortSignal): Promise<Progress> {
  const { caller } = core.till;
  const end = Date.now() + caller.deadline;
  const given = Date.now() + waitForOther;
  const reload = async () => (row = (await core.store.newest(row.kind, row.order_id)) ?? row);
  for (let n = 1; ; ) {
    if (row.state !== "written" && row.state !== "sending") return settled(row);
    const now = core.now();
    if (now >= row.send_until) return lapse(core, row, now, signal);
    if (signal?.aborted || Date.now() > end) return { state: "unclear" };
    if (n === 1 && inFlight(row, now) && Date.now() < given) {
      if (!(await caller.sleep(100, signal))) return { state: "unclear" };
      await reload();
      continue;
    }
    const lease = Math.max(now + caller.tryTimeout, row.lease + 1);
    if (!(await core.store.count(row, lease, lease + leaseGrace))) {
      await reload(); // another one was faster; see what it did
      continue;
    }
    const before = row.state === "sending";
    row = { ...row, state: "sending", lease, tries: row.tries + 1 };
    const [p, wait] = await post(core, row, before, end, signal);
    if (p.state === "taken" || wait === 0 || n++ >= tries || Date.now() + wait > end || !(await caller.sleep(wait, signal))) return p;
  }
}

/** The progress of a row that is sent no more. @internal */
export function settled(row: Row): Progress {
  if (row.state === "taken" || row.state === "ended") return { state: "taken", id: row.remote_id, ...(row.kind === "checkout" && pageOf(row)) };
  if (row.state === "lapsed") return { state: "lapsed" };
  if (row.state === "lost") return { state: "lost", id: row.remote_id };
  throw new Refused({ ...keptOf(row.details), ...named({}), code: row.problem, retry_after: 0, idempotency_key: row.idempotency_key, tries: row.tries, reason: "" });
}

const creates: Record<Kind, [post: Operation, list: Operation]> = {
  payment: [op.createPayment, op.listPayments], payout: [op.createPayout, op.listPayouts], refund: [op.createRefund, op.listRefunds],
  checkout: [op.createCheckout, op.listCheckouts],
};

/** Makes one try, which was counted, and settles the row. It also returns when to try again, 0 for not now. */
async function post<Tx>(core: Core<Tx>, row: Row, before: boolean, end: number, signal?: AbortSignal): Promise<[Progress, wait: number]> {
  const { caller } = core.till;
  let key: string;
  try {
    key = await caller.apiKey();
  } catch (e) { // it was counted, and nothing was sent
    await back(core, row, before);
    throw e;
  }
  const r: Request = { op: creates[row.kind][0], body: new Uint8Array(row.body), key: row.idempotency_key, signal };
  let got = await caller.try(r, key, 0, end);
  if (got.status === 401) {
    const again = await caller.newKey(key);
    if (again) got = await caller.try(r, again, 0, end);
  }
  let verdict = judge(r.op, got, before);
  if (verdict === "done") {
    if (madeBy(got, row.idempotency_key)) {
      caller.success();
      await take(core, row, got.value as Thing);
      return [progress(row, got.value as Thing, got.headers.get("Idempotent-Replayed") === "true"), 0];
    }
    verdict = "unclear";
  }
  if (verdict === "look") {
    try {
      const found = await find(core, row, signal);
      if (found) return [await adopt(core, row, found), 0];
      // The try before of a payout or refund may have been taken, by a service that was restored since.
      verdict = row.kind === "payment" || row.kind === "checkout" ? "refused" : "unclear";
    } catch {
      verdict = "unclear";
    }
  }
  return unsettled(core, row, before, failure(verdict, got, row.idempotency_key, row.tries), got);
}

/** Notes a try that did not bring the answer that was wished for. */
async function unsettled<Tx>(core: Core<Tx>, row: Row, before: boolean, error: TillError, got: Tried): Promise<[Progress, wait: number]> {
  const own = { from: ["sending" as const], lease: row.lease };
  if (error instanceof Refused) {
    await end(core, row, { ...own, state: "refused", problem: error.code || "refused", details: detailsOf(error) }, before);
    throw error;
  }
  const wait = passing(got) ? delay(Math.min(row.tries - 1, 5), got.retryAfter, core.till.caller.random()) : 0;
  const next_at = Math.trunc(core.now() + Math.max(outboxDelay(row.tries), got.retryAfter));
  const unclear = error instanceof Unclear; // otherwise nothing arrived, now or before
  await settle(core, row, { ...own, state: unclear ? "sending" : "written", next_at });
  return [{ state: unclear ? "unclear" : "later", error }, wait];
}

/**
 * Settles a row that is sent no more, as refused, lapsed or lost, and tells it: in one transaction, and once,
 * because the row must be as expected. It returns whether it was. If your function fails, it was not told,
 * and an unsent row is as before. @internal
 */
export async function end<Tx>(core: Core<Tx>, row: Row, s: Omit<Settlement, "idempotency_key"> & { state: "refused" | "lapsed" | "lost"; from: State[] }, before?: boolean): Promise<boolean> {
  const { kind, idempotency_key: key, order_id: order, attempt } = row;
  const { detail, errors } = keptOf(s.details);
  const { reference = "" } = parse(decode(row.body)) as { reference?: string };
  let done = false;
  await core.store.apply(key, kind, key, async (tx, _, attempts) => {
    const mine = attempts.find((a) => a.idempotency_key === key);
    done = !!mine && s.from.includes(mine.state) && (s.lease ?? mine.lease) === mine.lease;
    if (!done) return {};
    const change = {
      ...nothing, kind: `${kind}.${s.state}`, order, reference, attempt, idempotency_key: key, alreadyPaid: kind !== "refund" && (attempts.some((a) => a !== mine && isPaid(a)) || (await paidBesides(core.store, tx, row))),
      problem: s.problem, detail, errors, [s.state]: true,
    };
    await core.fn(change as EndedChange, tx);
    return { settle: { ...s, idempotency_key: key } };
  }).catch(async (e: unknown) => {
    if (before !== undefined) await back(core, row, before);
    throw e;
  });
  if (done) row.state = s.state;
  return done;
}

/** What a row keeps of an answer, beside its code. */
interface Kept {
  status: number;
  detail: string;
  request_id: string;
  errors: FieldError[];
}

/** Writes what a row keeps of an error. @internal */
export const detailsOf = ({ status, detail, request_id, errors }: Kept): string => render({ status, detail, request_id, errors });

/** Reads it again. */
const keptOf = (details: string | undefined): Kept => ({ status: 0, detail: "", request_id: "", errors: [], ...(details ? (parse(details) as Partial<Kept>) : {}) });

/** Undoes a count of which nothing was sent, or an end that your function did not take. */
async function back<Tx>(core: Core<Tx>, row: Row, before: boolean): Promise<void> {
  await settle(core, row, { from: [row.state], lease: row.lease, state: before ? "sending" : "written", next_at: core.now() + outboxDelay(row.tries) });
}

/** Changes a row in the store, and in memory if the store did. @internal */
export async function settle<Tx>(core: Core<Tx>, row: Row, s: Omit<Settlement, "idempotency_key">): Promise<boolean> {
  const ok = await core.store.settle({ ...s, idempotency_key: row.idempotency_key });
  if (ok && s.state) row.state = s.state;
  return ok;
}

/** How long the outbox waits after a try, in ms: 1, 2, 4 … 60 s. @internal */
export const outboxDelay = (tries: number): number => Math.min(60_000, 1000 * 2 ** Math.max(Math.min(tries, 7) - 1, 0));

const progress = ({ kind }: Row, made: Thing, replayed: boolean): Progress => ({ state: "taken", id: made.id, [kind]: made, replayed, ...("return_secret" in made && given(made)) });

/** What is kept of a page that was made. */
const given = (made: Thing) => ({ url: (made as NewCheckout).url ?? "", return_secret: (made as NewCheckout).return_secret });

/** Notes that the service has it. News that came before the answer is not undone. */
async function take<Tx>(core: Core<Tx>, row: Row, made: Thing): Promise<void> {
  const page = "state" in made;
  const taken = await settle(core, row, {
    from: ["written", "sending", "lapsed", "refused", "lost"], state: "taken", next_at: core.now() + core.openAfter, send_until: millis(made.expires_at), remote_id: made.id,
    ...(row.problem === abandoned ? {} : { problem: "", details: "" }),
    ...(page && { details: render(given(made)) }),
    // What ended is told by apply, with the call of the function.
    ...(row.status === "" && rank(statusOf(made)) < rankFinal ? { status: statusOf(made) } : {}),
  });
  if (taken || !page) return;
  // News came before the answer. Its payment is kept, and the page's address with it.
  const now = (await core.store.newest(row.kind, row.order_id)) ?? row;
  await settle(core, row, { from: ["taken", "ended"], details: render({ ...pageOf(now), ...given(made) }) });
}

/** Asks the service for what a row made. A checkout is not looked for: nobody was given its address. */
const find = async <Tx>(core: Core<Tx>, row: Row, signal?: AbortSignal): Promise<Thing | undefined> => row.kind === "checkout" ? undefined : byKey(core.till.caller, creates[row.kind][1], row.idempotency_key, signal);

/** Takes what was found, with the news that it brings. */
async function adopt<Tx>(core: Core<Tx>, row: Row, made: Thing): Promise<Progress> {
  await take(core, row, made);
  await applyRead(core, row.kind, made);
  return progress(row, made, true);
}

/**
 * Ends a wish whose time is over. What was never sent lapses. What may have arrived is asked for by its
 * key, not sooner than a request can be on its way; it is never posted again. If the service does not know
 * it, a payment lapses, and so does a checkout whose address was given to nobody. A payout or refund is lost: a service that was restored from a backup forgot what it
 * had paid out since, and one more would pay twice.
 */
async function lapse<Tx>(core: Core<Tx>, row: Row, now: number, signal?: AbortSignal): Promise<Progress> {
  if (row.state === "written") {
    if (!(await end(core, row, { from: ["written"], state: "lapsed", problem: stale }, false))) throw new OrderError("other_write", row.order_id);
    return { state: "lapsed" };
  }
  const own: Partial<Settlement> = { from: ["sending"], lease: row.lease };
  const look = row.lease + core.lookAfter;
  if (now < look) {
    await settle(core, row, { ...own, next_at: look });
    return { state: "unclear" };
  }
  let found: Thing | undefined;
  try {
    found = await find(core, row, signal);
  } catch (error) {
    await settle(core, row, { ...own, next_at: now + core.lookAfter });
    return { state: "unclear", error };
  }
  if (found) return adopt(core, row, found);
  const state = row.kind === "payment" || (row.kind === "checkout" && !row.remote_id) ? "lapsed" : "lost";
  const ended = await end(core, row, { from: ["sending"], lease: row.lease, state, problem: stale }, true);
  return { state: ended ? state : "unclear" }; // otherwise news came meanwhile
}
