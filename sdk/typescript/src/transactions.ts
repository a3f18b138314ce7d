import { failure, judge, passing, delay, type Caller, type Query, type Request } from "./call.js";
import { parse } from "./json.js";
import * as op from "./operations.gen.js";
import { all } from "./page.js";
import type { CallOptions, Paged } from "./payments.js";
import type { Transaction, TransactionPage, TransactionType } from "./types.gen.js";

/** Narrows the statement; what is absent does not. Both dates are inclusive. */
export interface TransactionFilter {
  type?: TransactionType;
  currency?: string;
  payment_id?: string;
  payout_id?: string;
  reference?: string;
  from_date?: string | Date;
  to_date?: string | Date;
  order?: "asc" | "desc";
}

/** Bounds a line of an export. */
const maxLine = 1 << 20;

/** The calls about the statement. */
export class Transactions {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** Lists transactions, newest first, with their total. */
  page(filter: Paged<TransactionFilter> = {}, options: CallOptions = {}): Promise<TransactionPage> {
    return this.caller.read<TransactionPage>({ op: op.listTransactions, query: { ...filter }, signal: options.signal });
  }

  all(filter: TransactionFilter = {}, options: CallOptions = {}): AsyncGenerator<Transaction, void, undefined> {
    return all({ ...filter }, (query: Query) => this.page(query as TransactionFilter, options));
  }

  /**
   * Streams the whole statement that the filter leaves, as of now, oldest first. It throws if the stream
   * was cut: what was given is then not the whole.
   */
  async *export(filter: Omit<TransactionFilter, "order"> = {}, options: CallOptions = {}): AsyncGenerator<Transaction, void, undefined> {
    const c = this.caller;
    const key = await c.apiKey();
    for (let n = 1; ; n++) {
      let open!: (stream: [ReadableStream<Uint8Array>, () => () => void]) => void;
      let close!: (e?: unknown) => void;
      const opened = new Promise<[ReadableStream<Uint8Array>, () => () => void]>((resolve) => (open = resolve));
      const closed = new Promise<void>((resolve, reject) => (close = (e) => (e ? reject(e) : resolve())));
      const r: Request = { op: op.listTransactions, query: { ...filter }, accept: "application/jsonl", signal: options.signal, stream: (body, watch) => (open([body, watch]), closed) };
      const trying = c.try(r, key);
      const body = await Promise.race([opened, trying.then(() => null)]);
      if (body) yield* lines(...body, close);
      const t = await trying;
      if (body && !t.reason) return;
      const wait = delay(n - 1, t.retryAfter, c.random());
      const again = !body && n < c.tries && passing(t) && wait <= c.deadline; // once lines were given, a repeat would give them twice
      if (!again || !(await c.sleep(wait, options.signal))) throw failure(judge(r.op, t, false), t, "", n);
    }
  }
}

/** Reads lines of JSON, and tells how the stream ended. */
async function* lines(body: ReadableStream<Uint8Array>, watch: () => () => void, close: (e?: unknown) => void): AsyncGenerator<Transaction, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let failed: unknown = new Error("nobody reads on");
  try {
    for (;;) {
      const ended = watch();
      const { done, value } = await reader.read().finally(ended);
      rest += decoder.decode(value, { stream: !done });
      const whole = rest.split("\n");
      rest = done ? "" : whole.pop()!;
      if (rest.length > maxLine) throw new RangeError("till: a line of the export is too long");
      for (const line of whole) if (line.trim()) yield parse(line) as Transaction;
      if (done) {
        failed = undefined;
        return;
      }
    }
  } catch (e) {
    failed = e ?? failed;
  } finally {
    close(failed);
    if (failed) await reader.cancel().catch(() => {});
  }
}
