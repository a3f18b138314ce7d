import type { Store } from "../store.js";
import { storeOf } from "./sql.js";
import { postgres } from "./tables.gen.js";

/** What a client of node-postgres is, as far as it is needed. */
export interface PgQueryable {
  query(text: string, values?: unknown[]): Promise<{ rows: any[]; rowCount: number | null }>;
}

/** A client that goes back to its pool. */
export interface PgClient extends PgQueryable {
  release(error?: Error | boolean): void;
}

/** What a Pool of node-postgres is, as far as it is needed. */
export interface PgPool<C extends PgClient = PgClient> extends PgQueryable {
  connect(): Promise<C>;
}

/** The three tables in PostgreSQL, through a Pool of node-postgres. Your handle of a transaction is a client that has begun one. */
export function pgStore<C extends PgClient>(pool: PgPool<C>): Store<PgQueryable> {
  return storeOf<PgQueryable>({
    dialect: "postgres",
    async query(tx, sql, values) {
      const { rows, rowCount } = await (tx ?? pool).query(sql, values);
      return { rows, changes: rowCount ?? 0 };
    },
    async transaction(fn) {
      const client = await pool.connect();
      let broken: Error | undefined;
      try {
        await client.query("BEGIN");
        const out = await fn(client);
        await client.query("COMMIT");
        return out;
      } catch (e) {
        // A client that cannot undo is of no use to the next one.
        await client.query("ROLLBACK").catch((lost: Error) => (broken = lost));
        throw e;
      } finally {
        client.release(broken);
      }
    },
  }, postgres);
}
