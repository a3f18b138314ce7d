import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { sqliteStore, type SqliteDatabase } from "../src/stores/index.js";
import { main } from "./driver.js";

const builtin = "node:sqlite"; // of Node 22.5 and later, which the types here do not know
const { DatabaseSync } = (await import(builtin)) as { DatabaseSync: new (path: string) => SqliteDatabase };

// The driver with the SQL store on SQLite.
await main<SqliteDatabase>(async (folder) => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const db = new DatabaseSync(join(folder, "shop.db"));
  // A kill loses no commit without the sync, only a loss of power does.
  db.exec("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE IF NOT EXISTS acts (n INTEGER PRIMARY KEY, order_id TEXT, what TEXT)");
  const store = sqliteStore(db);
  return {
    store,
    update: (fn) => store.transaction(fn),
    act: (tx, order, what) => void tx.prepare("INSERT INTO acts (order_id, what) VALUES (?, ?)").run(order, what),
    acted: () =>
      store.transaction((tx) => {
        const out: Record<string, string[]> = {};
        for (const a of tx.prepare("SELECT order_id, what FROM acts ORDER BY n").all() as { order_id: string; what: string }[]) (out[a.order_id] ??= []).push(a.what);
        return out;
      }),
  };
});
