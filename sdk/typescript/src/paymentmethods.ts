import type { Caller } from "./call.js";
import { encode, render } from "./json.js";
import * as op from "./operations.gen.js";
import type { CallOptions } from "./payments.js";
import type { PaymentMethodList, PaymentMethodPrediction } from "./types.gen.js";

/** The calls about methods. */
export class PaymentMethods {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** The methods enabled for you. */
  list(options: CallOptions = {}): Promise<PaymentMethodList> {
    return this.caller.read<PaymentMethodList>({ op: op.listPaymentMethods, signal: options.signal });
  }

  /**
   * Reads a number as it was typed, and says which of your methods it probably belongs to. The country may be left
   * out if the number begins with its calling code, or if all your methods are in one country.
   */
  predict(phone: string, country?: string, options: CallOptions = {}): Promise<PaymentMethodPrediction> {
    return this.caller.read<PaymentMethodPrediction>({ op: op.predictPaymentMethod, body: encode(render({ phone, country })), signal: options.signal });
  }
}
