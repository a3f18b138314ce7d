import { sleep } from "./call.js";
import type { Core, Report } from "./core.js";
import { Refused, Unavailable } from "./error.js";
import { applyEvent, applyRead, rank, rankFinal } from "./inbox.js";
import * as op from "./operations.gen.js";
import { OrderError, StillOpen } from "./ordererror.js";
import { send, settle, settled } from "./outbox.js";
import { getWaiting } from "./payments.js";
import { abandoned, needsAttention, type Cursor, type Kind, type Row, type Settlement } from "./store.js";
import type { EventPage, Payment, Payout } from "./types.gen.js";

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
/** At most 20 calls a second. */
const sweepGap = 50;

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

/** Waits for its turn; false if the signal ended it. */
async function turn<Tx>(core: Core<Tx>, signal?: AbortSignal): Promise<boolean> {
  const at = Math.max(core.pace, Date.now());
  core.pace = at + sweepGap;
  const wait = at - Date.now();
  return wait > 0 ? sleep(wait, signal) : !signal?.aborted;
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
  let cursor: Cursor = { ...(await core.store.cursor(core.cursor)), name: core.cursor };
  let { after } = cursor;
  let reset = false;
  const failed: unknown[] = [];
  const end = () => {
    if (failed.length) throw new AggregateError(failed, "till: some events were not applied");
  };
  for (;;) {
    if (!(await turn(core, signal))) return end();
    const page = await core.till.events.read(after, { limit: logPage, wait, signal }).catch((e: unknown) => {
      if (e instanceof Refused && e.code === "cursor_ahead") return undefined;
      throw failed.length ? new AggregateError([...failed, e], "till: the event log was not read") : e;
    });
    if (!page || (cursor.log_id && page.log_id !== cursor.log_id)) {
      if (reset) throw new Error("till: the event log changes while it is read");
      await reread(core, r, signal);
      cursor = { ...cursor, log_id: "", after: 0 };
      after = 0;
      reset = true;
      continue;
    }
    cursor = { ...cursor, log_id: page.log_id };
    await applyPage(core, page, cursor, reset, failed, r, signal);
    const last = page.next_after === after || !page.items.length;
    after = page.next_after;
    if (!failed.length) {
      cursor.after = after;
      await core.store.moveCursor(cursor, reset);
      reset = false;
    }
    if (last || (wait > 0 && !failed.length)) return end();
    wait = 0;
  }
}

/** Applies the events of a page. The cursor moves with each, as long as none failed. */
async function applyPage<Tx>(core: Core<Tx>, page: EventPage, cursor: Cursor, reset: boolean, failed: unknown[], r: Report, signal?: AbortSignal): Promise<void> {
  for (const e of page.items) {
    try {
      await applyEvent(core, e, failed.length || reset ? undefined : { ...cursor, after: e.sequence });
      r.applied++;
    } catch (error) {
      if (signal?.aborted) throw error;
      failed.push(error);
    }
  }
}

/** Reads every attempt of the last seven days: the service was restored from a backup, and its log is another one. */
async function reread<Tx>(core: Core<Tx>, r: Report, signal?: AbortSignal): Promise<void> {
  const from = core.now() - lookBack;
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

const gets = { payment: op.getPayment, payout: op.getPayout };

/** Reads the payment or payout of a row. One that the service does not know any more is lost: that is reported, never posted by itself. */
async function readAndApply<Tx>(core: Core<Tx>, row: Row, wait: number, signal?: AbortSignal): Promise<Payment | Payout | undefined> {
  let about: Payment | Payout;
  try {
    about = await getWaiting<Payment>(core.till.caller, gets[row.kind], row.remote_id, wait, signal);
  } catch (e) {
    if (!(e instanceof Refused && (e.code === "payment_not_found" || e.code === "payout_not_found"))) throw e;
    await settle(core, row, { from: ["taken", "ended"], state: "lost", problem: e.code });
    return undefined;
  }
  await applyRead(core, row.kind, about);
  const s: Omit<Settlement, "idempotency_key"> = { from: ["taken"], next_at: core.now() + core.openAfter };
  if (about.resolution?.state === needsAttention && row.problem !== abandoned) s.problem = needsAttention;
  await settle(core, row, s);
  return about;
}

/** The pauses between reads where the service has no long poll, in ms. */
const polls = [1000, 1000, 2000, 3000, 5000];

/** @internal */
export async function wait<Tx>(core: Core<Tx>, kind: Kind, order: string, ms: number, signal?: AbortSignal): Promise<Payment | Payout> {
  const end = Date.now() + ms;
  for (let n = 0; ; n++) {
    const row = await core.store.newest(kind, order);
    if (!row) throw new OrderError("no_attempt", order);
    if (row.state === "written" || row.state === "sending") {
      if (core.now() >= row.next_at || row.tries === 0) await send(core, row, 1, signal);
    } else if (row.state === "taken" || row.state === "ended") {
      try {
        const about = await readAndApply(core, row, Math.min(end - Date.now(), 30_000), signal);
        if (about && rank(about.status) >= rankFinal) return about;
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
