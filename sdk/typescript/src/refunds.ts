import type { Caller, Query } from "./call.js";
import * as op from "./operations.gen.js";
import { all } from "./page.js";
import { create, type CallOptions, type Paged, type PaymentFilter } from "./payments.js";
import type { AttemptList, CreateRefund, EventList, Refund, RefundList, RefundPage, RefundStatus } from "./types.gen.js";

/** Narrows a list; what is absent does not. Both dates are inclusive. */
export type RefundFilter = Omit<PaymentFilter, "status"> & { status?: RefundStatus; payment_id?: string };

/** The calls about refunds. */
export class Refunds {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** Gives a payment back, to the number that paid it. The key must be stored before. The answer is not final. */
  create(p: CreateRefund, options: CallOptions = {}): Promise<Refund> {
    return create<Refund>(this.caller, op.createRefund, op.listRefunds, p, options);
  }

  get(id: string, options: CallOptions = {}): Promise<Refund> {
    return this.caller.read<Refund>({ op: op.getRefund, params: [id], signal: options.signal });
  }

  /** Ends a refund of which nothing was sent. */
  cancel(id: string, options: CallOptions = {}): Promise<Refund> {
    return this.caller.read<Refund>({ op: op.cancelRefund, params: [id], signal: options.signal });
  }

  /** Lists refunds, newest first, with their total. */
  page(filter: Paged<RefundFilter> = {}, options: CallOptions = {}): Promise<RefundPage> {
    return this.caller.read<RefundPage>({ op: op.listRefunds, query: { ...filter }, signal: options.signal });
  }

  /** Goes through all refunds that match, each once, whatever changes meanwhile. */
  all(filter: RefundFilter = {}, options: CallOptions = {}): AsyncGenerator<Refund, void, undefined> {
    return all({ ...filter }, (query: Query) => this.page(query as RefundFilter, options));
  }

  /** Lists the calls to the operator. */
  attempts(id: string, options: CallOptions = {}): Promise<AttemptList> {
    return this.caller.read<AttemptList>({ op: op.listRefundAttempts, params: [id], signal: options.signal });
  }

  events(id: string, options: CallOptions = {}): Promise<EventList> {
    return this.caller.read<EventList>({ op: op.listRefundEvents, params: [id], signal: options.signal });
  }

  /** Lists the refunds of a payment, the newest first. */
  of(payment: string, options: CallOptions = {}): Promise<RefundList> {
    return this.caller.read<RefundList>({ op: op.listPaymentRefunds, params: [payment], signal: options.signal });
  }
}
