import { mkdir, open, realpath, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Cursor, Decision, Kind, Row, Settlement, Store, Subject } from "../store.js";
import { Turns } from "./lock.js";

/** One line: what a transaction wrote. */
interface Line {
  rows?: (Omit<Row, "body" | "details"> & { body: string; details?: string })[]; // details came later
  subjects?: Subject[];
  cursors?: Cursor[];
  notes?: Record<string, string>;
}

/** A transaction of a file store: what is written in it becomes one line, or nothing. */
export class FileTx {
  /** @internal */
  readonly rows: Row[] = [];
  /** @internal */
  readonly subjects: Subject[] = [];
  /** @internal */
  readonly cursors: Cursor[] = [];
  /** @internal */
  readonly notes: Map<string, string> = new Map();

  /** @internal */
  constructor(private readonly known: Map<string, string>) {}

  /** Keeps a small value under a name, in the transaction. */
  set(name: string, value: string): void {
    this.notes.set(name, value);
  }

  /** A value that was set; "" if none was. */
  get(name: string): string {
    return this.notes.get(name) ?? this.known.get(name) ?? "";
  }

  /** @internal */
  line(): Line | undefined {
    const { rows, subjects, cursors, notes } = this;
    if (!rows.length && !subjects.length && !cursors.length && !notes.size) return undefined;
    return { rows: rows.map((r) => ({ ...r, body: Buffer.from(r.body).toString("base64") })), subjects, cursors, notes: Object.fromEntries(notes) };
  }
}

/** Programs of one process that use one folder take turns here, before they do with other programs. */
const queues = new Map<string, { last: Promise<unknown>; turns: Turns }>();

/**
 * A store in a folder, for scripts and first steps: a line for each change, synced, all of it in memory.
 * Its transaction is its own file: an order in your database is not in it. Programs of one machine can share
 * the folder, not those of two.
 */
export class FileStore implements Store<FileTx> {
  private read = 0; // how much of the file is in memory
  private readonly rows = new Map<string, Row>();
  private readonly orders = new Map<string, string[]>(); // keys by kind and order, oldest first
  private readonly subjects = new Map<string, Subject>();
  private readonly cursors = new Map<string, Cursor>();
  private readonly notes = new Map<string, string>();

  private constructor(private readonly file: FileHandle, private readonly queue: { last: Promise<unknown>; turns: Turns }) {}

  /** Opens the store in a folder, and makes both if they are missing. */
  static async open(folder: string): Promise<FileStore> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = await realpath(folder);
    let queue = queues.get(path);
    if (!queue) queues.set(path, (queue = { last: Promise.resolve(), turns: new Turns(path) }));
    await (await open(join(path, "till.jsonl"), "a", 0o600)).close();
    const store = new FileStore(await open(join(path, "till.jsonl"), "r+"), queue);
    await store.view(() => {});
    return store;
  }

  close(): Promise<void> {
    return this.file.close();
  }

  async install(): Promise<void> {}

  /** Runs a transaction. Nobody else writes meanwhile, so it awaits nothing but collect and payOut. */
  update<A>(fn: (tx: FileTx) => A | Promise<A>): Promise<A> {
    return this.view(async () => {
      const tx = new FileTx(this.notes);
      const out = await fn(tx);
      await this.append(tx);
      return out;
    });
  }

  /** A value that a transaction set. */
  get(name: string): Promise<string> {
    return this.view(() => this.notes.get(name) ?? "");
  }

  /** Every value that transactions set, by name. */
  all(): Promise<Record<string, string>> {
    return this.view(() => Object.fromEntries(this.notes));
  }

  /** Takes its turn, reads on, and calls fn. */
  private view<A>(fn: () => A | Promise<A>): Promise<A> {
    const mine = this.queue.last.then(async () => {
      const end = await this.queue.turns.take();
      try {
        await this.catchUp();
        return await fn();
      } finally {
        end();
      }
    });
    this.queue.last = mine.catch(() => {});
    return mine;
  }

  /** Reads the lines that others wrote. A line without an end is that of a program that died: nobody was told that it was written, so it goes. */
  private async catchUp(): Promise<void> {
    const { size } = await this.file.stat();
    if (size <= this.read) return;
    const text = Buffer.alloc(size - this.read);
    for (let n = 0; n < text.length; ) {
      const { bytesRead } = await this.file.read(text, n, text.length - n, this.read + n);
      if (!bytesRead) throw new Error("till: the file store was cut while it was read");
      n += bytesRead;
    }
    const whole = text.lastIndexOf(10) + 1;
    for (const line of text.subarray(0, whole).toString("utf8").split("\n")) if (line) this.add(JSON.parse(line) as Line);
    this.read += whole;
    if (whole < text.length) await this.file.truncate(this.read);
  }

  /** Writes a line and syncs it. A line that is not written whole is taken back. */
  private async append(tx: FileTx): Promise<void> {
    const line = tx.line();
    if (!line) return;
    const bytes = Buffer.from(JSON.stringify(line) + "\n");
    try {
      for (let n = 0; n < bytes.length; ) n += (await this.file.write(bytes, n, bytes.length - n, this.read + n)).bytesWritten;
      await this.file.sync();
    } catch (e) {
      await this.file.truncate(this.read);
      throw e;
    }
    this.read += bytes.length;
    this.add(line);
  }

  private add(line: Line): void {
    for (const r of line.rows ?? []) {
      const row: Row = { details: "", ...r, body: new Uint8Array(Buffer.from(r.body, "base64")) };
      if (!this.rows.has(row.idempotency_key)) {
        const name = row.kind + " " + row.order_id;
        this.orders.set(name, [...(this.orders.get(name) ?? []), row.idempotency_key]);
      }
      this.rows.set(row.idempotency_key, row);
    }
    for (const s of line.subjects ?? []) this.subjects.set(s.id, s);
    for (const c of line.cursors ?? []) this.cursors.set(c.name, c);
    for (const [name, value] of Object.entries(line.notes ?? {})) this.notes.set(name, value);
  }

  private ofOrder(kind: string, order: string): Row[] {
    return (this.orders.get(kind + " " + order) ?? []).map((key) => ({ ...this.rows.get(key)! }));
  }

  async attempts(tx: FileTx, kind: Kind, order: string): Promise<Row[]> {
    return [...this.ofOrder(kind, order), ...tx.rows.filter((r) => r.kind === kind && r.order_id === order)];
  }

  async put(tx: FileTx, row: Row): Promise<boolean> {
    if ((await this.attempts(tx, row.kind, row.order_id)).some((r) => r.attempt === row.attempt)) return false;
    tx.rows.push({ ...row });
    return true;
  }

  newest(kind: Kind, order: string): Promise<Row | undefined> {
    return this.view(() => this.ofOrder(kind, order).at(-1));
  }

  /** The first rows that match, in the order of a member. */
  private some(limit: number, by: "next_at" | "created_at" | "attempt", match: (r: Row) => boolean): Promise<Row[]> {
    const key = (r: Row) => r.idempotency_key;
    const order = (a: Row, b: Row) => (by === "attempt" ? 0 : a[by] - b[by]) || (key(a) < key(b) ? -1 : 1);
    return this.view(() => [...this.rows.values()].filter(match).sort(order).slice(0, limit).map((r) => ({ ...r })));
  }

  due(now: number, limit: number): Promise<Row[]> {
    return this.some(limit, "next_at", (r) => (r.state === "written" || r.state === "sending") && r.next_at <= now);
  }

  open(now: number, limit: number): Promise<Row[]> {
    return this.some(limit, "next_at", (r) => r.state === "taken" && r.next_at <= now);
  }

  since(from: number, afterKey: string, limit: number): Promise<Row[]> {
    return this.some(limit, "attempt", (r) => r.created_at >= from && r.idempotency_key > afterKey);
  }

  attention(from: number, limit: number): Promise<Row[]> {
    const seen = (r: Row) => ["refused", "lapsed", "lost"].includes(r.state) || (r.state === "taken" && r.problem === "needs_attention");
    return this.some(limit, "created_at", (r) => seen(r) && r.created_at >= from);
  }

  count(row: Row, lease: number, next: number): Promise<boolean> {
    return this.view(async () => {
      const r = this.rows.get(row.idempotency_key);
      if (!r || r.lease !== row.lease || r.state !== row.state) return false;
      await this.write({ ...r, state: "sending", lease, next_at: next, tries: r.tries + 1 });
      return true;
    });
  }

  settle(s: Settlement): Promise<boolean> {
    return this.view(async () => {
      const r = this.settled(s);
      if (r) await this.write(r);
      return r !== undefined;
    });
  }

  private async write(row: Row): Promise<void> {
    const tx = new FileTx(this.notes);
    tx.rows.push(row);
    await this.append(tx);
  }

  /** The row as a settlement leaves it, if it is as expected. */
  private settled({ idempotency_key, from, lease, ...sets }: Settlement): Row | undefined {
    const r = this.rows.get(idempotency_key);
    if (!r || (from && !from.includes(r.state)) || (lease !== undefined && r.lease !== lease)) return undefined;
    return { ...r, ...Object.fromEntries(Object.entries(sets).filter(([, v]) => v !== undefined)) };
  }

  apply(subject: string, kind: Kind | "", key: string, fn: (tx: FileTx, s: Subject, attempts: Row[]) => Promise<Decision>): Promise<void> {
    return this.view(async () => {
      const known = this.subjects.get(subject);
      const row = this.rows.get(key);
      const tx = new FileTx(this.notes);
      const s: Subject = known ? { ...known, seen: [...known.seen] } : { id: subject, rank: 0, seen: [], sequence: 0 };
      const d = await fn(tx, s, row?.kind === kind ? this.ofOrder(kind, row.order_id) : []);
      if (d.subject) tx.subjects.push(d.subject);
      const after = d.settle && this.settled(d.settle);
      if (after) tx.rows.push(after);
      if (d.cursor && this.forward(d.cursor)) tx.cursors.push(d.cursor);
      await this.append(tx);
    });
  }

  private forward(c: Cursor): boolean {
    const old = this.cursors.get(c.name);
    return !old || (old.log_id === c.log_id && old.after < c.after);
  }

  cursor(name: string): Promise<Cursor> {
    return this.view(() => ({ ...(this.cursors.get(name) ?? { name, log_id: "", after: 0 }) }));
  }

  moveCursor(c: Cursor, reset: boolean): Promise<void> {
    return this.view(async () => {
      if (!reset && !this.forward(c)) return;
      const tx = new FileTx(this.notes);
      tx.cursors.push({ ...c });
      await this.append(tx);
    });
  }
}

/** Opens the store in a folder, and makes both if they are missing. */
export const fileStore = (folder: string): Promise<FileStore> => FileStore.open(folder);
