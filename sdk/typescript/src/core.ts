import { sleep } from "./call.js";
import type { Change } from "./change.js";
import type { Till } from "./client.js";
import type { Kind, Store } from "./store.js";
import type { Event } from "./types.gen.js";

/** What a sweep did. */
export interface Report {
  /** Attempts that the service took. */
  sent: number;
  /** Attempts that are sent again later. */
  waiting: number;
  /** Events of the log that were looked at. */
  applied: number;
  /** Open attempts that were read. */
  open: number;
  attention: Attention[];
}

/** An attempt that a person should look at. */
export interface Attention {
  kind: Kind;
  order: string;
  idempotency_key: string;
  state: string;
  /** needs_attention, stale, withdrawn, or a code of the service. */
  problem: string;
}

/** What a teller can be told. Times are in milliseconds. */
export interface TellerOptions<Tx> {
  /** How long a payment and a payout are sent, 10 minutes and 24 hours otherwise; a checkout as long as a payment, a refund as a payout. Nobody's phone rings at night for an order of the afternoon. */
  sendUntil?: { payment?: number; payout?: number };
  /** How long after the deadline of a try the service is asked whether it arrived, 60 s otherwise. A request can be that long on its way. */
  lookAfter?: number;
  /** How long a payment that was taken is left to webhooks and the log before a sweep reads it, 2 minutes otherwise. */
  openAfter?: number;
  /** Names the cursor of the event log, for two tellers on one database. */
  cursor?: string;
  /**
   * Asks for news of all payments, payouts and refunds of the client, those too that this store did not make:
   * with another store, or by hand. Their change has no order. Without it the function hears of its own orders
   * only, and of refunds of their payments, also those that others made. Checkouts that this store did not make, as
   * those of links, come to `onOther` either way.
   */
  foreign?: boolean;
  /** Where a new store begins to read the event log: at its end otherwise, as what was paid before it was made is no news. */
  from?: "start" | "end";
  /** Is told what each round of run did, and the error of your function in a webhook, whose sender is told nothing about it. */
  onReport?: (report: Partial<Report>, error?: unknown) => void;
  /** Is told about events that are no change of an attempt, each once, and about checkouts that this store did not make; without it they are accepted and forgotten. */
  onOther?: (event: Event, tx: Tx) => void | Promise<void>;
  /** Is told about pending and processing, each once. */
  onProgress?: (change: Change, tx: Tx) => void | Promise<void>;
  /** The clock, for tests. */
  now?: () => number;
}

/** What the parts of a teller share. @internal */
export interface Core<Tx> {
  till: Till;
  store: Store<Tx>;
  fn: (change: Change, tx: Tx) => void | Promise<void>;
  options: TellerOptions<Tx>;
  until: Record<Kind, number>;
  lookAfter: number;
  openAfter: number;
  cursor: string;
  /** As exact as stores keep it. */
  now: () => number;
  /** When the next call of a sweep may begin. */
  pace: number;
}

/** At most 20 calls a second. */
const sweepGap = 50;

/** Waits for its turn; false if the signal ended it. @internal */
export async function turn<Tx>(core: Core<Tx>, signal?: AbortSignal): Promise<boolean> {
  const at = Math.max(core.pace, Date.now());
  core.pace = at + sweepGap;
  const wait = at - Date.now();
  return wait > 0 ? sleep(wait, signal) : !signal?.aborted;
}
