import { Ended, type Caller } from "./call.js";
import { encode, render } from "./json.js";
import * as op from "./operations.gen.js";
import type { CallOptions } from "./payments.js";
import type { ApiKeyList, CreateApiKey, NewApiKey, RevokedApiKey, RotateApiKey } from "./types.gen.js";

/** The calls about keys. */
export class ApiKeys {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  list(options: CallOptions = {}): Promise<ApiKeyList> {
    return this.caller.read<ApiKeyList>({ op: op.listApiKeys, signal: options.signal });
  }

  /** Makes a key, which is in the answer this once. It is never repeated: without an answer, list the keys and revoke the one that you have not seen. */
  create(k: CreateApiKey = {}, options: CallOptions = {}): Promise<NewApiKey> {
    return this.caller.read<NewApiKey>({ op: op.createApiKey, body: encode(render(k)), signal: options.signal });
  }

  /** Makes the successor of a key. It is never repeated, like create. */
  rotate(id: string, r: RotateApiKey = {}, options: CallOptions = {}): Promise<NewApiKey> {
    return this.caller.read<NewApiKey>({ op: op.rotateApiKey, params: [id], body: encode(render(r)), signal: options.signal });
  }

  /** Ends a key and those that it made. */
  async revoke(id: string, options: CallOptions = {}): Promise<void> {
    await this.caller.read<void>({ op: op.revokeApiKey, params: [id], signal: options.signal });
  }

  /** Ends a key that leaked, with all that descends from it. The answer is undefined if the key was gone already. */
  async revokeAll(id: string, options: CallOptions = {}): Promise<RevokedApiKey | undefined> {
    const t = await this.caller.call({ op: op.revokeApiKey, params: [id], query: { cascade: "true" }, signal: options.signal });
    if (t instanceof Ended) throw t.error();
    return t.status === 200 ? (t.value as RevokedApiKey) : undefined;
  }
}
