import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { createPool } from "mysql2/promise";
import { mysqlStore } from "../dist/src/stores/index.js";
import { storeTest } from "../dist/test/storetest.js";

// A MariaDB of its own; make sdk installs one. Without its tables of users there is nobody to ask for.
const folder = mkdtempSync(join(tmpdir(), "till-mysql-"));
const socket = join(folder, "socket");
mkdirSync(join(folder, "data"));
const server = spawn("mariadbd", [
  "--no-defaults", `--datadir=${join(folder, "data")}`, `--socket=${socket}`, "--skip-networking", "--skip-grant-tables", "--user=root", `--pid-file=${join(folder, "pid")}`,
  "--innodb-flush-log-at-trx-commit=0",
], { stdio: "ignore" });
const pools = [];
const open = (database) => {
  const pool = createPool({ socketPath: socket, user: "root", connectionLimit: 12, ...(database ? { database } : {}) });
  pools.push(pool);
  return pool;
};
after(async () => {
  for (const pool of pools) await pool.end();
  server.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const admin = open();
for (let i = 0; ; i++) {
  try {
    await admin.query("SELECT 1");
    break;
  } catch (e) {
    if (i === 300) throw e;
    await pause(200);
  }
}

async function transaction(pool, fn) {
  const connection = await pool.getConnection();
  try {
    await connection.query("BEGIN");
    await fn(connection);
    await connection.query("COMMIT");
  } catch (e) {
    await connection.query("ROLLBACK");
    throw e;
  } finally {
    connection.release();
  }
}

let n = 0;
storeTest("mysqlStore", async () => {
  const name = `shop${n++}`;
  await admin.query(`CREATE DATABASE ${name}`);
  const pool = open(name);
  const store = mysqlStore(pool);
  await store.install();
  await pool.query("CREATE TABLE yours (value VARCHAR(20)) ENGINE=InnoDB");
  return {
    store, update: (fn) => transaction(pool, fn), open: async () => mysqlStore(pool),
    set: (tx, value) => tx.query("INSERT INTO yours VALUES (?)", [value]),
    get: async () => (await pool.query("SELECT value FROM yours"))[0][0]?.value ?? "",
  };
});
