import type { Caller } from "./call.js";
import * as op from "./operations.gen.js";
import type { CallOptions } from "./payments.js";
import type { PaymentMethodList } from "./types.gen.js";

/** The calls about methods. */
export class PaymentMethods {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** The methods enabled for you. */
  list(options: CallOptions = {}): Promise<PaymentMethodList> {
    return this.caller.read<PaymentMethodList>({ op: op.listPaymentMethods, signal: options.signal });
  }
}
