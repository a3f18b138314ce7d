import type { Caller, Query } from "./call.js";
import * as op from "./operations.gen.js";
import { all } from "./page.js";
import { create, type CallOptions, type Paged, type PaymentFilter } from "./payments.js";
import type { Checkout, CheckoutPage, CheckoutState, CreateCheckout, NewCheckout } from "./types.gen.js";

/** Narrows a list; what is absent does not. Both dates are inclusive. */
export type CheckoutFilter = Pick<PaymentFilter, "from_date" | "to_date" | "reference" | "order"> & { state?: CheckoutState; link_id?: string };

/** The calls about orders that are paid on a page of the service. */
export class Checkouts {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /**
   * Makes a page on which a customer pays one order. Send the customer to the `url` of the answer, and keep its
   * `return_secret` with the order. The key must be stored before. No money is asked by it: after `Unclear` make
   * the same call with the same key again, which answers what the first one made.
   */
  create(c: CreateCheckout, options: CallOptions = {}): Promise<NewCheckout> {
    return create<NewCheckout>(this.caller, op.createCheckout, undefined, c, options);
  }

  get(id: string, options: CallOptions = {}): Promise<Checkout> {
    return this.caller.read<Checkout>({ op: op.getCheckout, params: [id], signal: options.signal });
  }

  /** Ends a checkout of which no ask may still bring money. */
  cancel(id: string, options: CallOptions = {}): Promise<Checkout> {
    return this.caller.read<Checkout>({ op: op.cancelCheckout, params: [id], signal: options.signal });
  }

  /** Lists checkouts, newest first, with their total. */
  page(filter: Paged<CheckoutFilter> = {}, options: CallOptions = {}): Promise<CheckoutPage> {
    return this.caller.read<CheckoutPage>({ op: op.listCheckouts, query: { ...filter }, signal: options.signal });
  }

  /** Goes through all checkouts that match, each once, whatever changes meanwhile. */
  all(filter: CheckoutFilter = {}, options: CallOptions = {}): AsyncGenerator<Checkout, void, undefined> {
    return all({ ...filter }, (query: Query) => this.page(query as CheckoutFilter, options));
  }
}
