/** Kinds of rows in the outbox. */
export type Kind = "payment" | "payout" | "refund" | "checkout";

/**
 * States of a row in the outbox.
 *
 * - `written`: provably nothing arrived at the service.
 * - `sending`: a try was counted, and no answer says that nothing arrived.
 * - `taken`: the service has it.
 * - `ended`: its status is final.
 * - `refused`: the service does not take it; nothing exists.
 * - `lapsed`: it was not sent in its time, or withdrawn; nothing exists.
 * - `lost`: the service had it, or of a payout or refund may have had it, and does not know it.
 */
export type State = "written" | "sending" | "taken" | "ended" | "refused" | "lapsed" | "lost";

/** An attempt in the outbox. Times are milliseconds since 1970. */
export interface Row {
  /** Drawn once. */
  idempotency_key: string;
  kind: Kind;
  order_id: string;
  attempt: number;
  /** The bytes that every try sends. */
  body: Uint8Array;
  state: State;
  tries: number;
  /** When to send it, or to read it again. */
  next_at: number;
  /** The deadline of its last try; 0 before the first. */
  lease: number;
  /** After this it is posted no more; once taken, when the customer's time ends. */
  send_until: number;
  /** The id of the payment, payout, refund or checkout; "" before it is known. */
  remote_id: string;
  /** The last kind of news, without its noun: success, late_success, reversed, … */
  status: string;
  /** Why a person should look. */
  problem: string;
  created_at: number;
  /** JSON: status, detail, request_id and errors of the problem; url, return_secret and payment_id of a checkout; "" where there are none. */
  details: string;
}

/** Changes a row of the outbox if it is as expected. What is absent is left. */
export interface Settlement {
  idempotency_key: string;
  /** The states that it may be in; absent for any. */
  from?: State[];
  /** Its lease must be this: no other try was counted since. */
  lease?: number;
  state?: State;
  next_at?: number;
  send_until?: number | undefined;
  remote_id?: string;
  status?: string;
  problem?: string;
  details?: string;
}

/** What is known about a payment, payout, refund or other event. */
export interface Subject {
  id: string;
  rank: number;
  /** Kinds of news, in the order of their coming. */
  seen: string[];
  sequence: number;
}

/** How far the event log was read. */
export interface Cursor {
  name: string;
  /** Which log. */
  log_id: string;
  after: number;
}

/** What an application saves, in its transaction. */
export interface Decision {
  subject?: Subject;
  settle?: Settlement | undefined;
  cursor?: Cursor | undefined;
}

/** Three tables in your database. Tx is your handle of a transaction. A store of your own passes the cases in test/storetest.ts. */
export interface Store<Tx> {
  /** Makes the tables where they are missing, and the columns that came later. */
  install(): Promise<void>;

  /** The attempts of an order, oldest first, as tx sees them. */
  attempts(tx: Tx, kind: Kind, order: string): Promise<Row[]>;
  /** Inserts a row in tx. False if the order has an attempt of this number already; tx can go on then, and sees it. */
  put(tx: Tx, row: Row): Promise<boolean>;

  /** The newest attempt of an order. */
  newest(kind: Kind, order: string): Promise<Row | undefined>;
  /** Rows to send, those first that are due longest. */
  due(now: number, limit: number): Promise<Row[]>;
  /** Counts a try in a commit of its own, before its first byte: the row is sending from then on. False if another one counted first: if the lease is not that of row any more. */
  count(row: Row, lease: number, next: number): Promise<boolean>;
  /** Changes a row, and reports whether it was as expected. */
  settle(s: Settlement): Promise<boolean>;
  /** Rows that are taken and to be read again. */
  open(now: number, limit: number): Promise<Row[]>;
  /** Rows by key, made at or after a time, whose key is greater. */
  since(from: number, afterKey: string, limit: number): Promise<Row[]>;
  /** Rows made at or after a time that a person should see. */
  attention(from: number, limit: number): Promise<Row[]>;

  /**
   * Opens a transaction, locks the subject and all attempts of the order that has the key, calls fn with
   * them, saves what it decides, and commits. If fn fails, nothing is saved. Fn may be called again after
   * a conflict with another transaction, which rolled the first one back.
   */
  apply(subject: string, kind: Kind | "", key: string, fn: (tx: Tx, s: Subject, attempts: Row[]) => Promise<Decision>): Promise<void>;

  cursor(name: string): Promise<Cursor>;
  /** Moves a cursor forward within its log. With reset it may go anywhere. */
  moveCursor(c: Cursor, reset: boolean): Promise<void>;
}

/** Words in the column problem beside codes of the service. @internal */
export const [abandoned, withdrawn, stale, needsAttention] = ["abandoned", "withdrawn", "stale", "needs_attention"];

/** Reports whether an attempt may still bring money. @internal */
export const isOpen = (r: Row): boolean => ["written", "sending", "taken", "lost"].includes(r.state) && r.problem !== abandoned;

/** Reports whether an attempt brought money that stands. @internal */
export const isPaid = (r: Row): boolean => brought(r.status);

/** Reports whether a status says that money came. @internal */
export const brought = (status: string): boolean => ["success", "late_success", "paid", "overpaid"].includes(status);

/** Reports whether the order of a row was paid in the other way: by a number, or on a page. @internal */
export const paidBesides = async <Tx>(store: Store<Tx>, tx: Tx, { kind, order_id }: Row): Promise<boolean> => (await besides(store, tx, kind, order_id)).some(isPaid);

/** The attempts of an order in the other way to be paid. @internal */
export const besides = async <Tx>(store: Store<Tx>, tx: Tx, kind: Kind, order: string): Promise<Row[]> =>
  kind === "payment" ? store.attempts(tx, "checkout", order) : kind === "checkout" ? store.attempts(tx, "payment", order) : [];

/** Reports whether an attempt ended without money. @internal */
export const isUnpaid = (r: Row): boolean => ["failed", "expired", "cancelled"].includes(r.status);
