import type { Caller } from "./call.js";
import * as op from "./operations.gen.js";
import type { CallOptions } from "./payments.js";
import type { WalletList } from "./types.gen.js";

/** The calls about wallets. */
export class Wallets {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** Your wallets, one per currency. */
  list(options: CallOptions = {}): Promise<WalletList> {
    return this.caller.read<WalletList>({ op: op.listWallets, signal: options.signal });
  }
}
