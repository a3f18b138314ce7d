import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Cursor, Decision, Row, Settlement, State, Store, Subject } from "../src/index.js";

/** A store, empty and installed, and how to run a transaction of your own on its database. Open opens the same database again, as another program. */
export interface Env<Tx> {
  store: Store<Tx>;
  update(fn: (tx: Tx) => Promise<void>): Promise<void>;
  open(): Promise<Store<Tx>>;
  /** Keeps a value of yours in the transaction. */
  set(tx: Tx, value: string): Promise<void> | void;
  get(): Promise<string>;
}

const start = Date.UTC(2026, 10, 15, 5, 51, 53, 123);
const row = (order: string, attempt: number, more: Partial<Row> = {}): Row => ({
  idempotency_key: `00000000-0000-4000-8000-${order}${attempt}`, kind: "payment", order_id: order, attempt, body: new TextEncoder().encode('{"a": 1}'), state: "written", tries: 0,
  next_at: start, lease: 0, send_until: start + 60_000, remote_id: "", status: "", problem: "", created_at: start, details: "", ...more,
});
const key = (order: string, attempt: number): string => row(order, attempt).idempotency_key;
const names = (rows: Row[]): string[] => rows.map((r) => `${r.order_id}${r.attempt}`);
const no = new Error("no");

/** Runs the suite; open is called once for each case. A store of your own passes it. */
export function storeTest<Tx>(name: string, open: () => Promise<Env<Tx>>): void {
  const cases: Record<string, (s: Suite<Tx>) => Promise<void>> = { ...outboxCases<Tx>(), ...applyCases<Tx>(), ...cursorCases<Tx>() };
  test(name, async (t) => {
    for (const [title, run] of Object.entries(cases)) await t.test(title, async () => run(new Suite(await open())));
  });
}

class Suite<Tx> {
  constructor(readonly env: Env<Tx>) {}
  get store(): Store<Tx> {
    return this.env.store;
  }
  put(...rows: Row[]): Promise<void> {
    return this.env.update(async (tx) => {
      for (const r of rows) assert.ok(await this.store.put(tx, r), r.idempotency_key);
    });
  }
  async get(order: string): Promise<Row> {
    const r = await this.store.newest("payment", order);
    assert.ok(r, `there is no attempt of ${order}`);
    return r;
  }
  settle(x: Settlement): Promise<boolean> {
    return this.store.settle(x);
  }
  /** Applies with a function that only decides. */
  apply(subject: string, k: string, fn: (x: Subject, rows: Row[]) => Decision | Promise<Decision>): Promise<void> {
    return this.store.apply(subject, "payment", k, async (_tx, x, rows) => fn(x, rows));
  }
  /** Checks that a failed application left nothing behind. */
  async untouched(): Promise<void> {
    await this.apply("p1", "", (x) => {
      assert.deepEqual([x.rank, x.seen], [0, []]);
      return {};
    });
    assert.equal((await this.get("a")).state, "written");
    assert.equal((await this.store.cursor("log")).after, 0);
    assert.equal(await this.env.get(), "");
  }
}

function outboxCases<Tx>(): Record<string, (s: Suite<Tx>) => Promise<void>> {
  return {
    async "install twice changes nothing"(s) {
      await s.put(row("a", 1));
      await s.store.install();
      await s.get("a");
    },
    async "put is seen after the commit"(s) {
      await s.put(row("a", 1));
      const r = await s.get("a");
      assert.deepEqual([r.state, r.attempt, r.lease, r.remote_id, r.next_at, r.send_until, r.created_at], ["written", 1, 0, "", start, start + 60_000, start]);
    },
    async "put goes with its transaction"(s) {
      await assert.rejects(s.env.update(async (tx) => {
        await s.store.put(tx, row("a", 1));
        throw no;
      }), no);
      assert.equal(await s.store.newest("payment", "a"), undefined);
    },
    async "put keeps the bytes"(s) {
      const body = new TextEncoder().encode('{"text": "a\\u00e9 é 😀 \\n", "n": 123456789012.123456,  "x":\t1}');
      await s.put(row("a", 1, { body }));
      assert.deepEqual(Buffer.from((await s.get("a")).body), Buffer.from(body));
    },
    async "put of an attempt that is there leaves it"(s) {
      await s.put(row("a", 1));
      await s.env.update(async (tx) => {
        assert.equal(await s.store.put(tx, row("a", 1, { idempotency_key: "00000000-0000-4000-8000-other", body: new Uint8Array([1]) })), false);
        assert.deepEqual(names(await s.store.attempts(tx, "payment", "a")), ["a1"]); // it goes on
      });
      assert.equal((await s.get("a")).body.length, 8);
    },
    async "put in the same transaction is seen by attempts"(s) {
      await s.env.update(async (tx) => {
        await s.store.put(tx, row("a", 1));
        assert.deepEqual(names(await s.store.attempts(tx, "payment", "a")), ["a1"]);
      });
    },
    async "attempts are oldest first, by kind and order"(s) {
      await s.put(row("a", 1), row("a", 2), row("b", 1), row("a", 1, { kind: "payout", idempotency_key: "00000000-0000-4000-8000-payout" }));
      await s.env.update(async (tx) => {
        assert.deepEqual(names(await s.store.attempts(tx, "payment", "a")), ["a1", "a2"]);
        assert.deepEqual(names(await s.store.attempts(tx, "payout", "a")), ["a1"]);
        assert.deepEqual(names(await s.store.attempts(tx, "payment", "c")), []);
      });
    },
    async "newest of nothing is undefined"(s) {
      assert.equal(await s.store.newest("payment", "a"), undefined);
    },
    async "newest is the last attempt"(s) {
      await s.put(row("a", 1), row("a", 2));
      assert.equal((await s.get("a")).attempt, 2);
    },
    async "due holds to the time, the state and the limit"(s) {
      await s.put(row("a", 1, { next_at: start + 1000 }), row("b", 1, { next_at: start - 1000 }), row("c", 1, { state: "sending" }), row("d", 1, { state: "taken" }));
      assert.deepEqual(names(await s.store.due(start, 10)), ["b1", "c1"]);
      assert.deepEqual(names(await s.store.due(start, 1)), ["b1"]);
      assert.deepEqual(names(await s.store.due(start + 1000, 10)), ["b1", "c1", "a1"]);
    },
    async "count is a compare and swap"(s) {
      await s.put(row("a", 1));
      const r = await s.get("a");
      assert.ok(await s.store.count(r, start + 10_000, start + 11_000));
      const got = await s.get("a");
      assert.deepEqual([got.state, got.tries, got.lease, got.next_at], ["sending", 1, start + 10_000, start + 11_000]);
      assert.equal(await s.store.count(r, start + 10_001, start), false, "the lease is another");
      assert.ok(await s.store.count(got, start + 20_000, start));
      assert.equal((await s.get("a")).tries, 2);
    },
    async "count refuses what is taken"(s) {
      await s.put(row("a", 1));
      const r = await s.get("a");
      await s.settle({ idempotency_key: r.idempotency_key, state: "taken" });
      assert.equal(await s.store.count(r, start + 1000, start), false);
      assert.equal((await s.get("a")).state, "taken");
    },
    async "count by many succeeds once"(s) {
      await s.put(row("a", 1));
      const r = await s.get("a");
      const won = await Promise.all(Array.from({ length: 8 }, (_, n) => s.store.count(r, start + 1000 * (n + 1), start)));
      assert.equal(won.filter(Boolean).length, 1);
      assert.equal((await s.get("a")).tries, 1);
    },
    async "settle holds to the state"(s) {
      await s.put(row("a", 1));
      const k = key("a", 1);
      assert.equal(await s.settle({ idempotency_key: k, from: ["sending", "taken"], state: "ended" }), false);
      assert.equal((await s.get("a")).state, "written");
      assert.ok(await s.settle({ idempotency_key: k, from: ["sending", "written"], state: "taken" }));
      assert.equal((await s.get("a")).state, "taken");
    },
    async "settle holds to the lease"(s) {
      await s.put(row("a", 1));
      await s.store.count(await s.get("a"), start + 10_000, start);
      assert.equal(await s.settle({ idempotency_key: key("a", 1), lease: start + 10_001, state: "written" }), false);
      assert.ok(await s.settle({ idempotency_key: key("a", 1), lease: start + 10_000, state: "written" }));
    },
    async "settle leaves what is not named"(s) {
      await s.put(row("a", 1));
      const k = key("a", 1);
      await s.settle({ idempotency_key: k, remote_id: "r1", status: "pending", problem: "p" });
      await s.settle({ idempotency_key: k, next_at: start + 3600_000, send_until: undefined });
      const r = await s.get("a");
      assert.deepEqual([r.remote_id, r.status, r.problem, r.state, r.send_until, r.next_at], ["r1", "pending", "p", "written", start + 60_000, start + 3600_000]);
      await s.settle({ idempotency_key: k, problem: "" });
      assert.equal((await s.get("a")).problem, "", "an empty text is a value");
      const details = '{"detail": "« Airtel » 😀", "errors": []}';
      await s.settle({ idempotency_key: k, details });
      assert.deepEqual([(await s.get("a")).details, (await s.get("a")).state], [details, "written"]);
    },
    async "settle of an unknown key does nothing"(s) {
      assert.equal(await s.settle({ idempotency_key: "00000000-0000-4000-8000-nobody", state: "taken" }), false);
    },
    async "open holds to the time and the state"(s) {
      await s.put(row("a", 1, { state: "taken" }), row("b", 1, { state: "taken", next_at: start + 60_000 }), row("c", 1, { state: "ended" }));
      assert.deepEqual(names(await s.store.open(start, 10)), ["a1"]);
      assert.deepEqual(names(await s.store.open(start + 60_000, 10)), ["a1", "b1"]);
      assert.deepEqual(names(await s.store.open(start + 60_000, 1)), ["a1"]);
    },
    async "since goes by key from a time"(s) {
      await s.put(row("a", 1, { created_at: start - 3600_000 }), row("b", 1), row("c", 1), row("d", 1));
      assert.deepEqual(names(await s.store.since(start, "", 2)), ["b1", "c1"]);
      assert.deepEqual(names(await s.store.since(start, key("c", 1), 2)), ["d1"]);
    },
    async "attention lists what a person should see"(s) {
      const states: State[] = ["written", "sending", "taken", "ended", "refused", "lapsed", "lost", "taken"];
      await s.put(...states.map((state, i) => row("abcdefgh"[i]!, 1, { state, created_at: start + i * 1000, problem: i === 7 ? "needs_attention" : "" })));
      assert.deepEqual(names(await s.store.attention(start, 10)), ["e1", "f1", "g1", "h1"]);
      assert.deepEqual(names(await s.store.attention(start + 6000, 10)), ["g1", "h1"]);
      assert.deepEqual(names(await s.store.attention(start, 1)), ["e1"]);
    },
    async "put of one attempt by many succeeds once"(s) {
      let won = 0;
      const worker = async (n: number) => {
        for (let i = 0; ; i++) { // a transaction that another one undid is yours to repeat
          let first = false;
          try {
            await s.env.update(async (tx) => void (first = await s.store.put(tx, row("a", 1, { idempotency_key: `00000000-0000-4000-8000-worker${n}` }))));
          } catch (e) {
            if (i === 50) throw e;
            await pause(10);
            continue;
          }
          if (first) won++;
          return;
        }
      };
      await Promise.all([0, 1, 2, 3, 4, 5].map(worker));
      assert.equal(won, 1);
    },
    async "another program sees it all"(s) {
      await s.put(row("a", 1));
      const other = await s.env.open();
      const r = await other.newest("payment", "a");
      assert.ok(r);
      assert.ok(await other.count(r, start + 1000, start));
      assert.equal((await s.get("a")).tries, 1);
    },
    async "texts of the world are kept"(s) {
      const order = "commande n° 7, 你好 😀 '\"; -- $1 ?";
      await s.put(row("a", 1, { order_id: order }));
      assert.equal((await s.get(order)).order_id, order);
    },
  };
}

function applyCases<Tx>(): Record<string, (s: Suite<Tx>) => Promise<void>> {
  const decide = (x: Subject, rows: Row[]): Decision => ({
    subject: { ...x, rank: 3, seen: ["success"] }, settle: { idempotency_key: rows[0]!.idempotency_key, state: "ended" }, cursor: { name: "log", log_id: "l", after: 9 },
  });
  return {
    async "apply saves what it decides"(s) {
      await s.put(row("a", 1));
      await s.apply("p1", key("a", 1), (x) => {
        assert.deepEqual(x, { id: "p1", rank: 0, seen: [], sequence: 0 });
        return { subject: { ...x, rank: 3, seen: ["success"] }, settle: { idempotency_key: key("a", 1), state: "ended", remote_id: "p1", status: "success" } };
      });
      const r = await s.get("a");
      assert.deepEqual([r.state, r.remote_id, r.status], ["ended", "p1", "success"]);
    },
    async "apply shows what is known"(s) {
      for (const i of [0, 1, 2])
        await s.apply("p1", "", (x) => {
          assert.deepEqual(x, { id: "p1", rank: 2 * i, seen: ["k0", "k1"].slice(0, i), sequence: i });
          return { subject: { ...x, rank: x.rank + 2, seen: [...x.seen, `k${i}`], sequence: i + 1 } };
        });
    },
    async "apply saves nothing if the function fails"(s) {
      await s.put(row("a", 1));
      const failing = s.store.apply("p1", "payment", key("a", 1), async (tx, x, rows) => {
        await s.env.set(tx, "yours");
        decide(x, rows);
        throw no;
      });
      await assert.rejects(failing, no);
      await s.untouched();
    },
    async "apply brings the order's attempts"(s) {
      await s.put(row("a", 1), row("a", 2), row("b", 1));
      await s.apply("p1", key("a", 2), (_x, rows) => {
        assert.deepEqual(names(rows), ["a1", "a2"]);
        return {};
      });
    },
    async "apply keeps kinds apart"(s) {
      await s.put(row("a", 1, { kind: "payout" }));
      await s.apply("p1", key("a", 1), (_x, rows) => {
        assert.deepEqual(names(rows), []);
        return {};
      });
    },
    async "apply of a subject without a row"(s) {
      await s.apply("p1", "00000000-0000-4000-8000-nobody", (x, rows) => {
        assert.deepEqual(names(rows), []);
        return { subject: { ...x, rank: 3 } };
      });
    },
    async "apply by many is one after the other"(s) {
      let first = 0;
      const one = () =>
        s.apply("p1", "", async (x) => {
          if (x.seen.includes("success")) return {};
          await pause(5);
          first++;
          return { subject: { ...x, seen: [...x.seen, "success"] } };
        });
      await Promise.all(Array.from({ length: 8 }, one));
      assert.equal(first, 1);
    },
    async "apply of two attempts is one after the other"(s) {
      await s.put(row("a", 1), row("a", 2));
      let first = 0;
      const one = (n: number) =>
        s.apply(`p${n}`, key("a", n), async (x, rows) => {
          if (!rows.some((r) => r.idempotency_key !== key("a", n) && r.status === "success")) first++;
          await pause(20);
          return { subject: x, settle: { idempotency_key: key("a", n), status: "success" } };
        });
      await Promise.all([1, 2].map(one));
      assert.equal(first, 1);
    },
    async "apply keeps your value in the transaction"(s) {
      await s.store.apply("p1", "payment", "", async (tx, subject) => {
        await s.env.set(tx, "yours");
        return { subject };
      });
      assert.equal(await s.env.get(), "yours");
    },
    async "a count while a function waits is not undone with it"(s) {
      await s.put(row("a", 1), row("b", 1));
      let counted: Promise<boolean> | undefined;
      const failing = s.apply("p1", key("a", 1), async () => {
        counted = s.get("b").then((r) => s.store.count(r, start + 1000, start));
        await pause(20);
        throw no;
      });
      await assert.rejects(failing, no);
      assert.ok(await counted);
      assert.equal((await s.get("b")).tries, 1);
    },
  };
}

function cursorCases<Tx>(): Record<string, (s: Suite<Tx>) => Promise<void>> {
  const at = (name: string, log_id: string, after: number): Cursor => ({ name, log_id, after });
  const is = async (s: Suite<Tx>, want: Cursor) => assert.deepEqual(await s.store.cursor(want.name), want);
  return {
    async "apply moves the cursor"(s) {
      await s.apply("p1", "", (subject) => ({ subject, cursor: at("log", "l", 5) }));
      await is(s, at("log", "l", 5));
    },
    async "cursor of nothing is zero"(s) {
      await is(s, at("log", "", 0));
    },
    async "cursor only goes forward"(s) {
      for (const after of [5, 3, 5, 9, 8]) await s.store.moveCursor(at("log", "l", after), false);
      await is(s, at("log", "l", 9));
    },
    async "cursor of another log stays"(s) {
      await s.store.moveCursor(at("log", "l", 5), false);
      await s.store.moveCursor(at("log", "m", 9), false);
      await is(s, at("log", "l", 5));
    },
    async "cursor is reset by name"(s) {
      await s.store.moveCursor(at("log", "l", 5), false);
      await s.store.moveCursor(at("log", "m", 2), true);
      await is(s, at("log", "m", 2));
    },
    async "cursors have names"(s) {
      await s.store.moveCursor(at("log", "l", 5), false);
      await s.store.moveCursor(at("other", "l", 7), false);
      await is(s, at("log", "l", 5));
      await is(s, at("other", "l", 7));
    },
  };
}
