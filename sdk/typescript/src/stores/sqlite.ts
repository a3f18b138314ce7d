import type { Store } from "../store.js";
import { storeOf, type Result } from "./sql.js";
import { sqlite } from "./tables.gen.js";

/** What a database of node:sqlite or better-sqlite3 is, as far as it is needed. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): { all(...values: any[]): unknown[]; run(...values: any[]): { changes: number | bigint } };
}

/** A store in SQLite, and the transaction to write orders in. */
export interface SqliteStore<D> extends Store<D> {
  /**
   * Runs a function in a transaction of the connection, one after the other. Other statements of the store
   * wait meanwhile, so await in it only what it does in the database.
   */
  transaction<A>(fn: (db: D) => A | Promise<A>): Promise<A>;
}

/**
 * The three tables in SQLite, through node:sqlite or better-sqlite3. A connection has one transaction at a
 * time, so give the store a connection of its own, and write your orders in `store.transaction`: what else
 * writes on that connection while a transaction is open would go with it.
 */
export function sqliteStore<D extends SqliteDatabase>(db: D): SqliteStore<D> {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <A>(work: () => A | Promise<A>): Promise<A> => {
    const turn = last.then(work);
    last = turn.catch(() => {});
    return turn;
  };
  const query = (sql: string, values: unknown[]): Result => {
    const statement = db.prepare(sql);
    if (/^\s*SELECT/i.test(sql)) return { rows: statement.all(...values) as Result["rows"], changes: 0 };
    return { rows: [], changes: Number(statement.run(...values).changes) };
  };
  const transaction = <A>(fn: (db: D) => A | Promise<A>): Promise<A> =>
    inTurn(async () => {
      db.exec("BEGIN IMMEDIATE");
      try {
        const out = await fn(db);
        db.exec("COMMIT");
        return out;
      } catch (e) {
        try {
          db.exec("ROLLBACK");
        } catch {} // it is undone already
        throw e;
      }
    });
  const store = storeOf<D>({
    dialect: "sqlite",
    query: async (tx, sql, values) => (tx ? query(sql, values) : inTurn(() => query(sql, values))),
    transaction,
  }, sqlite);
  return { ...store, transaction };
}
