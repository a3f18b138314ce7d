import assert from "node:assert/strict";
import { after, test } from "node:test";
import pg from "pg";
import { pgStore, prismaStore, sqlStore } from "../dist/src/stores/index.js";
import { storeTest } from "../dist/test/storetest.js";

// make sdk starts a server; what it is called says withpg.
const url = process.env.TILL_TEST_POSTGRES_URL;
const pools = [];
let n = 0;

async function schema() {
  const name = `sdk_ts_${process.pid}_${n++}`;
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(`CREATE SCHEMA ${name}`);
  await admin.end();
  const pool = new pg.Pool({ connectionString: url, options: `-c search_path=${name}`, max: 12 });
  pools.push([pool, name]);
  return pool;
}

after(async () => {
  for (const [pool, name] of pools) {
    await pool.query(`DROP SCHEMA ${name} CASCADE`);
    await pool.end();
  }
});

/** A transaction as a shop writes it. */
async function transaction(pool, fn) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const out = await fn(client);
    await client.query("COMMIT");
    return out;
  } catch (e) {
    await client.query("ROLLBACK");
    throw e;
  } finally {
    client.release();
  }
}

/** A client with the methods of Prisma, on the same database. Prisma itself fetches programs while it is installed, so it is not here. */
const prismaLike = (on, pool) => ({
  $queryRawUnsafe: async (sql, ...values) => (await on.query(sql, values)).rows,
  $executeRawUnsafe: async (sql, ...values) => (await on.query(sql, values)).rowCount,
  $transaction: (fn) => transaction(pool, (client) => fn(prismaLike(client, pool))),
});

async function env(make, tx = (client) => client) {
  const pool = await schema();
  const store = make(pool);
  await store.install();
  await pool.query("CREATE TABLE yours (value TEXT)");
  return {
    store, update: (fn) => transaction(pool, (client) => fn(tx(client, pool))), open: async () => make(pool),
    set: (t, value) => (t.query ? t.query("INSERT INTO yours VALUES ($1)", [value]) : t.$executeRawUnsafe("INSERT INTO yours VALUES ($1)", value)),
    get: async () => (await pool.query("SELECT value FROM yours")).rows[0]?.value ?? "",
  };
}

test("there is a PostgreSQL", () => assert.ok(url, "TILL_TEST_POSTGRES_URL names no server; make sdk starts one"));
if (url) {
  storeTest("pgStore", () => env((pool) => pgStore(pool)));
  storeTest("prismaStore", () => env((pool) => prismaStore(prismaLike(pool, pool)), prismaLike));
  storeTest("sqlStore", () =>
    env((pool) =>
      sqlStore({
        dialect: "postgres",
        query: async (tx, sql, values) => {
          const { rows, rowCount } = await (tx ?? pool).query(sql, values);
          return { rows, changes: rowCount ?? 0 };
        },
        transaction: (fn) => transaction(pool, fn),
      })));
}
