import type { Caller, Query } from "./call.js";
import * as op from "./operations.gen.js";
import { all } from "./page.js";
import { create, type CallOptions, type Paged, type PaymentFilter } from "./payments.js";
import type { AttemptList, CreatePayout, EventList, Payout, PayoutPage, PayoutStatus } from "./types.gen.js";

/** Narrows a list; what is absent does not. Both dates are inclusive. */
export type PayoutFilter = Omit<PaymentFilter, "status"> & { status?: PayoutStatus };

/** The calls about payouts. */
export class Payouts {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** Sends money to a recipient. The key must be stored before: `Teller` does that. The answer is not final. */
  create(p: CreatePayout, options: CallOptions = {}): Promise<Payout> {
    return create<Payout>(this.caller, op.createPayout, op.listPayouts, p, options);
  }

  get(id: string, options: CallOptions = {}): Promise<Payout> {
    return this.caller.read<Payout>({ op: op.getPayout, params: [id], signal: options.signal });
  }

  /** Ends a payout of which nothing was sent. */
  cancel(id: string, options: CallOptions = {}): Promise<Payout> {
    return this.caller.read<Payout>({ op: op.cancelPayout, params: [id], signal: options.signal });
  }

  /** Lists payouts, newest first, with their total. */
  page(filter: Paged<PayoutFilter> = {}, options: CallOptions = {}): Promise<PayoutPage> {
    return this.caller.read<PayoutPage>({ op: op.listPayouts, query: { ...filter }, signal: options.signal });
  }

  /** Goes through all payouts that match, each once, whatever changes meanwhile. */
  all(filter: PayoutFilter = {}, options: CallOptions = {}): AsyncGenerator<Payout, void, undefined> {
    return all({ ...filter }, (query: Query) => this.page(query as PayoutFilter, options));
  }

  /** Lists the calls to the operator. */
  attempts(id: string, options: CallOptions = {}): Promise<AttemptList> {
    return this.caller.read<AttemptList>({ op: op.listPayoutAttempts, params: [id], signal: options.signal });
  }

  events(id: string, options: CallOptions = {}): Promise<EventList> {
    return this.caller.read<EventList>({ op: op.listPayoutEvents, params: [id], signal: options.signal });
  }
}
