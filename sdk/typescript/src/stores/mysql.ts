import type { Store } from "../store.js";
import { storeOf } from "./sql.js";
import { mysql } from "./tables.gen.js";

/** What a connection of mysql2/promise is, as far as it is needed. */
export interface MysqlQueryable {
  query(sql: string, values?: any): Promise<[any, ...any[]]>;
}

export interface MysqlConnection extends MysqlQueryable {
  release(): void;
  destroy(): void;
}

/** What a pool of mysql2/promise is, as far as it is needed. */
export interface MysqlPool<C extends MysqlConnection = MysqlConnection> extends MysqlQueryable {
  getConnection(): Promise<C>;
}

/** The three tables in MySQL or MariaDB, through a pool of mysql2/promise. Your handle of a transaction is a connection that has begun one. */
export function mysqlStore<C extends MysqlConnection>(pool: MysqlPool<C>): Store<MysqlQueryable> {
  return storeOf<MysqlQueryable>({
    dialect: "mysql",
    async query(tx, sql, values) {
      // Bytes go as a Buffer where there is one: mysql2 would write another array as text.
      const [found] = await (tx ?? pool).query(sql, values.map((v) => (v instanceof Uint8Array && "Buffer" in globalThis ? Buffer.from(v) : v)));
      return { rows: Array.isArray(found) ? found : [], changes: (found as { affectedRows?: number }).affectedRows ?? 0 };
    },
    async transaction(fn) {
      const connection = await pool.getConnection();
      let whole = true;
      try {
        await connection.query("BEGIN");
        const out = await fn(connection);
        await connection.query("COMMIT");
        return out;
      } catch (e) {
        await connection.query("ROLLBACK").catch(() => (whole = false));
        throw e;
      } finally {
        if (whole) connection.release();
        else connection.destroy();
      }
    },
  }, mysql);
}
