import type { Cursor, Decision, Kind, Row, Settlement, State, Store, Subject } from "../store.js";
import * as tables from "./tables.gen.js";

/** What a statement came to: its rows, or how many rows it changed. */
export interface Result {
  rows: Record<string, unknown>[];
  changes: number;
}

/** How to reach a database, for Knex, Drizzle, Kysely and whatever else can run a statement. */
export interface SqlOptions<Tx> {
  dialect: "postgres" | "sqlite" | "mysql";
  /** Runs a statement, in a transaction or by itself (tx is undefined). Values are texts, numbers, bytes and null. PostgreSQL gets $1, the others ?. */
  query(tx: Tx | undefined, sql: string, values: unknown[]): Promise<Result>;
  /** Runs a function in a transaction: it commits what the function did, or undoes it if the function throws. */
  transaction<A>(fn: (tx: Tx) => Promise<A>): Promise<A>;
}

const columns = "idempotency_key, kind, order_id, attempt, body, state, tries, next_at, lease, send_until, remote_id, status, problem, created_at, details";

/** How often a transaction is tried again that another one undid. */
const maxConflicts = 10;

/** Reports whether the database undid a transaction because another one was in its way. Drivers are not imported: they name the codes each in its way. */
function conflict(e: unknown): boolean {
  const { code, errno, errcode, message, meta, cause } = Object(e) as Record<string, unknown>;
  const text = [code, errno, errcode, message, (meta as { code?: unknown } | undefined)?.code].join(" ").toLowerCase();
  if (/\b(40001|40p01|1213|1205)\b|sqlite_busy|database is locked|could not serialize|deadlock|p2034/.test(text)) return true;
  return cause !== undefined && cause !== e && conflict(cause);
}

const pause = (n: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.random() * 10 * 2 ** Math.min(n, 5)));

/** Runs work again while the database is busy. */
async function patiently<A>(work: () => Promise<A>): Promise<A> {
  for (let n = 0; ; n++) {
    try {
      return await work();
    } catch (e) {
      if (n >= maxConflicts || !conflict(e)) throw e;
    }
    await pause(n);
  }
}

/** Keeps the three tables of a Store in a database of yours. The statements are written once, in the words that the databases have in common. */
export const sqlStore = <Tx>(db: SqlOptions<Tx>): Store<Tx> => storeOf(db, tables[db.dialect]);

/** The same with its tables: a program for one database does not carry those of the others. @internal */
export function storeOf<Tx>(db: SqlOptions<Tx>, schema: string): Store<Tx> {
  const mysql = db.dialect === "mysql";
  const lock = db.dialect === "sqlite" ? "" : " FOR UPDATE";
  const rank = mysql ? "`rank`" : "rank"; // a reserved word
  const ignore = (column: string) => (mysql ? ` ON DUPLICATE KEY UPDATE ${column} = ${column}` : " ON CONFLICT DO NOTHING");
  const query = (tx: Tx | undefined, sql: string, ...values: unknown[]): Promise<Result> => {
    let n = 0;
    return db.query(tx, db.dialect === "postgres" ? sql.replace(/\?/g, () => "$" + ++n) : sql, values);
  };
  const rows = async (tx: Tx | undefined, rest: string, ...values: unknown[]): Promise<Row[]> => {
    const found = await query(tx, `SELECT ${columns} FROM till_outbox WHERE ${rest}`, ...values);
    return found.rows.map(rowOf);
  };
  /** Runs a statement that changes one row or none. */
  const change = async (tx: Tx | undefined, sql: string, ...values: unknown[]): Promise<boolean> => {
    const once = async () => (await query(tx, sql, ...values)).changes > 0;
    return tx === undefined ? patiently(once) : once();
  };

  const settle = (tx: Tx | undefined, x: Settlement): Promise<boolean> => {
    const { idempotency_key, from, lease, ...sets } = x;
    const changed = Object.entries(sets).filter(([, v]) => v !== undefined);
    if (!changed.length) throw new TypeError("till: a settlement that changes nothing");
    let where = "idempotency_key = ?";
    if (from) where += ` AND state IN (${from.map(() => "?").join(", ")})`;
    if (lease !== undefined) where += " AND lease = ?";
    const names = changed.map(([name]) => column(name) + " = ?").join(", ");
    return change(tx, `UPDATE till_outbox SET ${names} WHERE ${where}`, ...changed.map(([, v]) => v), idempotency_key, ...(from ?? []), ...(lease === undefined ? [] : [lease]));
  };

  const moveCursor = async (tx: Tx | undefined, c: Cursor, reset: boolean): Promise<void> => {
    const insert = "INSERT INTO till_cursor (name, log_id, after_sequence) VALUES (?, ?, ?)";
    if (reset) {
      const over = mysql
        ? " ON DUPLICATE KEY UPDATE log_id = VALUES(log_id), after_sequence = VALUES(after_sequence)"
        : " ON CONFLICT (name) DO UPDATE SET log_id = excluded.log_id, after_sequence = excluded.after_sequence";
      await change(tx, insert + over, c.name, c.log_id, c.after);
      return;
    }
    const moved = await change(tx, "UPDATE till_cursor SET after_sequence = ? WHERE name = ? AND log_id = ? AND after_sequence < ?", c.after, c.name, c.log_id, c.after);
    if (!moved) await change(tx, insert + ignore("name"), c.name, c.log_id, c.after);
  };

  /** Locks all attempts of the order that a key belongs to, in one order: two attempts that are paid at the same moment know of each other. */
  const attemptsOf = async (tx: Tx, kind: Kind | "", key: string): Promise<Row[]> => {
    if (!key) return [];
    const found = await query(tx, "SELECT order_id FROM till_outbox WHERE idempotency_key = ? AND kind = ?", key, kind);
    return found.rows[0] ? rows(tx, "kind = ? AND order_id = ? ORDER BY attempt" + lock, kind, found.rows[0]["order_id"]) : [];
  };

  const save = async (tx: Tx, { subject, settle: settlement, cursor }: Decision): Promise<void> => {
    if (subject)
      await query(tx, `UPDATE till_subject SET ${rank} = ?, seen = ?, sequence = ?, updated_at = ? WHERE subject = ?`, subject.rank, subject.seen.join(" "), subject.sequence, Date.now(), subject.id);
    if (settlement) await settle(tx, settlement);
    if (cursor) await moveCursor(tx, cursor, false);
  };

  return {
    async install() {
      for (const sql of schema.split(/;\n|;$/)) if (sql.trim()) await query(undefined, sql.trim());
      // The column that tables of the first release lack. Two programs may add it at once: the one that comes late finds it there.
      const look = () => rows(undefined, "1 = 0");
      await look()
        .catch(() => query(undefined, "ALTER TABLE till_outbox ADD COLUMN details " + (mysql ? "MEDIUMTEXT CHARACTER SET utf8mb4" : "TEXT")))
        .catch(look);
    },
    attempts: (tx, kind, order) => rows(tx, "kind = ? AND order_id = ? ORDER BY attempt", kind, order),
    async put(tx, r) {
      // The insert waits for another one of the same attempt, and leaves the transaction usable if that one was first.
      const values = [r.idempotency_key, r.kind, r.order_id, r.attempt, r.body, r.state, r.tries, r.next_at, r.lease, r.send_until, r.status, r.problem, r.created_at, r.details];
      await query(tx, `INSERT INTO till_outbox (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?)${ignore("attempt")}`, ...values);
      // A locking read, because a snapshot does not show what another one inserted.
      const found = await query(tx, "SELECT idempotency_key FROM till_outbox WHERE kind = ? AND order_id = ? AND attempt = ?" + lock, r.kind, r.order_id, r.attempt);
      return found.rows[0]?.["idempotency_key"] === r.idempotency_key;
    },
    newest: async (kind, order) => (await rows(undefined, "kind = ? AND order_id = ? ORDER BY attempt DESC LIMIT 1", kind, order))[0],
    due: (now, limit) => rows(undefined, "state IN ('written', 'sending') AND next_at <= ? ORDER BY next_at LIMIT " + count(limit), now),
    open: (now, limit) => rows(undefined, "state = 'taken' AND next_at <= ? ORDER BY next_at LIMIT " + count(limit), now),
    since: (from, afterKey, limit) => rows(undefined, "created_at >= ? AND idempotency_key > ? ORDER BY idempotency_key LIMIT " + count(limit), from, afterKey),
    attention: (from, limit) =>
      rows(undefined, "(state IN ('refused', 'lapsed', 'lost') OR state = 'taken' AND problem = 'needs_attention') AND created_at >= ? ORDER BY created_at, idempotency_key LIMIT " + count(limit), from),
    count: (row, lease, next) =>
      change(undefined, "UPDATE till_outbox SET state = 'sending', tries = tries + 1, lease = ?, next_at = ? WHERE idempotency_key = ? AND lease = ? AND state = ?", lease, next, row.idempotency_key, row.lease, row.state),
    settle: (x) => settle(undefined, x),
    apply: (id, kind, key, fn) =>
      patiently(() =>
        db.transaction(async (tx) => {
          // A write first: SQLite takes its one lock now, the others that of this row.
          await query(tx, `INSERT INTO till_subject (subject, ${rank}, seen, sequence, updated_at) VALUES (?, 0, '', 0, ?)${ignore("subject")}`, id, Date.now());
          const found = (await query(tx, `SELECT ${rank}, seen, sequence FROM till_subject WHERE subject = ?${lock}`, id)).rows[0]!;
          const subject: Subject = { id, rank: Number(found["rank"]), seen: String(found["seen"]).split(" ").filter(Boolean), sequence: Number(found["sequence"]) };
          await save(tx, await fn(tx, subject, await attemptsOf(tx, kind, key)));
        }),
      ),
    async cursor(name) {
      const found = (await query(undefined, "SELECT log_id, after_sequence FROM till_cursor WHERE name = ?", name)).rows[0];
      return { name, log_id: String(found?.["log_id"] ?? ""), after: Number(found?.["after_sequence"] ?? 0) };
    },
    moveCursor: (c, reset) => moveCursor(undefined, c, reset),
  };
}

function column(name: string): string {
  if (!columns.split(", ").includes(name)) throw new TypeError("till: no such column: " + name);
  return name;
}

/** A limit stands in the statement: some drivers bind numbers as texts. */
const count = (limit: number): number => Math.max(0, Math.trunc(limit));

const numbers = ["attempt", "tries", "next_at", "lease", "send_until", "created_at"];

/** A row as the SDK reads it: drivers give large numbers as texts or big integers. */
function rowOf(r: Record<string, unknown>): Row {
  const out = { ...r, state: r["state"] as State, remote_id: r["remote_id"] ?? "", details: r["details"] ?? "" } as Record<string, unknown>;
  for (const name of numbers) out[name] = Number(r[name]);
  return out as unknown as Row;
}
