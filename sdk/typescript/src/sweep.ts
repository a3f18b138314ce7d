import { sleep } from "./call.js";
import { turn, type Core, type Report } from "./core.js";
import { Refused, Unavailable } from "./error.js";
import { applyEvent, applyRead, rank, rankFinal, statusOf, type Thing } from "./inbox.js";
import * as op from "./operations.gen.js";
import { OrderError, StillOpen } from "./ordererror.js";
import { detailsOf, end, send, settle, settled } from "./outbox.js";
import { getWaiting } from "./payments.js";
import { abandoned, needsAttention, type Cursor, type Kind, type Row, type Settlement } from "./store.js";
import type { EventPage } from "./types.gen.js";

/** Something in a sweep failed; the rest was done. */
export class SweepFailed extends AggregateError {
  override name = "SweepFailed";
  constructor(
    errors: unknown[],
    readonly report: Report,
  ) {
    super(errors, "till: sweep: " + errors.map((e) => (e instanceof Error ? e.message : String(e))).join("; "));
  }
}

/** Bounds of one sweep. */
const [maxDue, maxOpen, maxAttention, logPage, maxSends] = [100, 200, 100, 200, 4];
const lookBack = 7 * 86_400_000;

const empty = (): Report => ({ sent: 0, waiting: 0, applied: 0, open: 0, attention: [] });

/** @internal */
export async function sweep<Tx>(core: Core<Tx>, signal?: AbortSignal): Promise<Report> {
  const report = empty();
  const errors: unknown[] = [];
  for (const part of [sendDue, readLog, readOpen]) await part(core, report, signal).catch((e: unknown) => errors.push(e));
  try {
    for (const r of await core.store.attention(core.now() - lookBack, maxAttention))
      report.attention.push({ kind: r.kind, order: r.order_id, idempotency_key: r.idempotency_key, state: r.state, problem: r.problem });
  } catch (e) {
    errors.push(e);
  }
  if (errors.length) throw new SweepFailed(errors, report);
  return report;
}

/** @internal */
export async function run<Tx>(core: Core<Tx>, signal?: AbortSignal): Promise<void> {
  const loop = async (pause: number, work: (core: Core<Tx>, r: Report, signal?: AbortSignal) => Promise<void>) => {
    for (let failures = 0; !signal?.aborted; ) {
      const report = empty();
      let error: unknown;
      try {
        await work(core, report, signal);
        failures = 0;
      } catch (e) {
        error = e;
        failures++;
      }
      if (!signal?.aborted) core.options.onReport?.(report, error);
      await sleep(Math.max(pause, Math.min(60_000, failures * 1000)), signal);
    }
  };
  await Promise.all([loop(1000, sendDue), loop(10, (c, r, s) => readLog(c, r, s, 30_000)), loop(15_000, readOpen)]);
}

/** Sends what is due, four at a time. */
async function sendDue<Tx>(core: Core<Tx>, r: Report, signal?: AbortSignal): Promise<void> {
  const rows = await core.store.due(core.now(), maxDue);
  const errors: unknown[] = [];
  const one = async (row: Row) => {
    try {
      if ((await send(core, row, 1, signal)).state === "taken") r.sent++;
      else r.waiting++;
    } catch (e) {
      if (!(e instanceof Refused)) errors.push(e); // that one is on the attention list
    }
  };
  const worker = async () => {
    for (let row; (row = rows.shift()) && (await turn(core, signal)); ) await one(row);
  };
  await Promise.all(Array.from({ length: maxSends }, worker));
  if (errors.length) throw new AggregateError(errors, "till: some were not sent");
}

/**
 * Reads the event log from the cursor to its end. An event whose function fails holds the cursor back, and
 * nothing else: those after it are applied, and are old news when they are read again.
 */
async function readLog<Tx>(core: Core<Tx>, r: Report, signal?: AbortSignal, wait = 0): Promise<void> {
  const { foreign = false, from } = core.options;
  let cursor: Cursor = { ...(await core.store.cursor(core.cursor)), name: core.cursor };
  if (!cursor.log_id && from !== "start") cursor = await begin(core, r, signal);
  let { after } = cursor;
  let reset = false;
  let others = foreign;
  const failed: unknown[] = [];
  const over = () => {
    if (failed.length) throw new AggregateError(failed, "till: some events were not applied");
  };
  for (;;) {
    if (!(await turn(core, signal))) return over();
    const page = await core.till.events.read(after, { limit: logPage, wait, signal }).catch((e: unknown) => {
      if (e instanceof Refused && e.code === "cursor_ahead") return undefined;
      throw failed.length ? new AggregateError([...failed, e], "till: the event log was not read") : e;
    });
    if (!page || (cursor.log_id && page.log_id !== cursor.log_id)) {
      if (reset) throw new Error("till: the event log changes while it is read");
      await reread(core, core.now() - lookBack, r, signal);
      cursor = { ...cursor, log_id: "", after: 0 };
      after = 0;
      reset = true;
      others &&= from === "start"; // what of them is history cannot be told
      continue;
    }
    cursor = { ...cursor, log_id: page.log_id };
    await applyPage(core, page, reset ? undefined : cursor, others, failed, r, signal);
    const last = page.next_after === after || !page.items.length;
    after = page.next_after;
    if (!failed.length) {
      cursor.after = after;
      await core.store.moveCursor(cursor, reset);
      reset = false;
    }
    if (last || (wait > 0 && !failed.length)) return over();
    wait = 0;
  }
}

/** Applies the events of a page. The cursor moves with each, as long as none failed. */
async function applyPage<Tx>(core: Core<Tx>, page: EventPage, cursor: Cursor | undefined, others: boolean, failed: unknown[], r: Report, signal?: AbortSignal): Promise<void> {
  for (const e of page.items) {
    try {
      await applyEvent(core, e, failed.length || !cursor ? undefined : { ...cursor, after: e.sequence }, others);
      r.applied++;
    } catch (error) {
      if (signal?.aborted) throw error;
      failed.push(error);
    }
  }
}

/** Sets the cursor of a new store to the end of the log. What its own attempts came to before that is read from them. */
async function begin<Tx>(core: Core<Tx>, r: Report, signal?: AbortSignal): Promise<Cursor> {
  const cursor = await logEnd(core, signal);
  await reread(core, 0, r, signal);
  await core.store.moveCursor(cursor, false);
  return cursor;
}

/** Finds the end of the log: the service takes no sequence beyond it, so a few calls find it, however long it is. */
async function logEnd<Tx>(core: Core<Tx>, signal?: AbortSignal): Promise<Cursor> {
  const end: Cursor = { name: core.cursor, log_id: "", after: 0 };
  for (let at = 0, beyond = 0; ; ) {
    if (!(await turn(core, signal))) throw signal!.reason;
    try {
      const { log_id } = await core.till.events.read(at, { limit: 1, signal });
      if (end.log_id && log_id !== end.log_id) throw new Error("till: the event log changes while it is read");
      Object.assign(end, { log_id, after: at });
    } catch (e) {
      if (!(e instanceof Refused && e.code === "cursor_ahead" && at > 0)) throw e;
      beyond = at;
    }
    if (beyond && beyond - end.after <= 1) return end;
    at = beyond ? Math.floor((end.after + beyond) / 2) : Math.max(16, 4 * at);
  }
}

/** Reads every attempt since a time: the service was restored from a backup, and its log is another one; or this store begins. */
async function reread<Tx>(core: Core<Tx>, from: number, r: Report, signal?: AbortSignal): Promise<void> {
  for (let after = ""; ; ) {
    const rows = await core.store.since(from, after, maxOpen);
    for (const row of rows) {
      after = row.idempotency_key;
      if (row.remote_id) await readRow(core, row, r, signal); // otherwise the outbox sends it, or it is over
    }
    if (rows.length < maxOpen) return;
  }
}

/** Reads attempts that are taken, not ended, and left alone for long. */
async function readOpen<Tx>(core: Core<Tx>, r: Report, signal?: AbortSignal): Promise<void> {
  const errors: unknown[] = [];
  for (const row of await core.store.open(core.now(), maxOpen)) {
    await readRow(core, row, r, signal).catch((e: unknown) => errors.push(e));
    if (errors.length > 3 || signal?.aborted) break;
  }
  if (errors.length) throw new AggregateError(errors, "till: some attempts were not read");
}

/** Reads one attempt and applies what it shows. */
async function readRow<Tx>(core: Core<Tx>, row: Row, r: Report, signal?: AbortSignal): Promise<void> {
  if (!(await turn(core, signal))) throw signal!.reason;
  await readAndApply(core, row, 0, signal);
  r.open++;
}

const gets = { payment: op.getPayment, payout: op.getPayout, refund: op.getRefund, checkout: op.getCheckout };

/**
 * Reads what a row made. What the service does not know any more is lost: that is reported, never posted by itself. A
 * checkout is made again by its key as long as it can be paid: its page asks by the same keys as the lost one, so nobody
 * is debited twice.
 */
async function readAndApply<Tx>(core: Core<Tx>, row: Row, wait: number, signal?: AbortSignal): Promise<Thing | undefined> {
  let about: Thing;
  try {
    about = await getWaiting<Thing>(core.till.caller, gets[row.kind], row.remote_id, wait, signal);
  } catch (e) {
    if (!(e instanceof Refused && e.code === row.kind + "_not_found")) throw e;
    const again = row.kind === "checkout" && row.state === "taken" && core.now() < row.send_until;
    if (again) await settle(core, row, { from: ["taken"], state: "sending", next_at: core.now() });
    else await end(core, row, { from: ["taken", "ended"], state: "lost", problem: e.code, details: detailsOf(e) });
    return undefined;
  }
  await applyRead(core, row.kind, about);
  const s: Omit<Settlement, "idempotency_key"> = { from: ["taken"], next_at: core.now() + core.openAfter };
  if ("resolution" in about && about.resolution?.state === needsAttention && row.problem !== abandoned) s.problem = needsAttention;
  await settle(core, row, s);
  return about;
}

/** The pauses between reads where the service has no long poll, in ms. */
const polls = [1000, 1000, 2000, 3000, 5000];

/** @internal */
export async function wait<Tx>(core: Core<Tx>, kind: Kind, order: string, ms: number, signal?: AbortSignal): Promise<Thing> {
  const end = Date.now() + ms;
  for (let n = 0; ; n++) {
    const row = await core.store.newest(kind, order);
    if (!row) throw new OrderError("no_attempt", order);
    if (row.state === "written" || row.state === "sending") {
      if (core.now() >= row.next_at || row.tries === 0) await send(core, row, 1, signal);
    } else if (row.state === "taken" || row.state === "ended") {
      try {
        const about = await readAndApply(core, row, Math.min(end - Date.now(), 30_000), signal);
        if (about && rank(statusOf(about)) >= rankFinal) return about;
      } catch (e) {
        if (!(e instanceof Unavailable)) throw e;
      }
    } else {
      settled(row); // throws what was refused
      throw new StillOpen(order);
    }
    const pause = polls[Math.min(n, polls.length - 1)]!;
    if (Date.now() + pause > end) throw new StillOpen(order);
    if (!(await core.till.caller.sleep(pause, signal))) throw signal!.reason;
  }
}
