import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { sqliteStore } from "../dist/src/stores/index.js";
import { storeTest } from "../dist/test/storetest.js";

const folder = mkdtempSync(join(tmpdir(), "till-sqlite-"));
after(() => rmSync(folder, { recursive: true }));

let n = 0;
storeTest("sqliteStore", async () => {
  const path = join(folder, `shop${n++}.db`);
  const open = () => {
    const db = new DatabaseSync(path);
    db.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 2000; PRAGMA synchronous = NORMAL");
    return sqliteStore(db);
  };
  const store = open();
  await store.install();
  await store.transaction((db) => db.exec("CREATE TABLE yours (value TEXT)"));
  return {
    store, update: (fn) => store.transaction(fn), open: async () => open(),
    set: (db, value) => void db.prepare("INSERT INTO yours VALUES (?)").run(value),
    get: () => store.transaction((db) => db.prepare("SELECT value FROM yours").all()[0]?.value ?? ""),
  };
});
