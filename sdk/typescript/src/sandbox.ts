import type { Caller } from "./call.js";
import { encode, render } from "./json.js";
import * as op from "./operations.gen.js";
import type { CallOptions } from "./payments.js";
import type { SandboxDecision, SandboxPromptList, SandboxStoryList, WebhookEndpoint } from "./types.gen.js";

/** The calls that play the customer, with test keys only. */
export class Sandbox {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** Lists what waits for a decision. */
  prompts(options: CallOptions = {}): Promise<SandboxPromptList> {
    return this.caller.read<SandboxPromptList>({ op: op.listSandboxPrompts, signal: options.signal });
  }

  /** The customer's word. */
  decide(payment_id: string, action: "approve" | "decline" | "wrong_pin" | "no_funds", options: CallOptions = {}): Promise<SandboxDecision> {
    return this.caller.read<SandboxDecision>({ op: op.decideSandboxPrompt, params: [payment_id], body: encode(render({ action })), signal: options.signal });
  }

  /** Lists what the sandbox plays, by the last digits of a phone. */
  stories(options: CallOptions = {}): Promise<SandboxStoryList> {
    return this.caller.read<SandboxStoryList>({ op: op.listSandboxStories, signal: options.signal });
  }

  /** Disables an endpoint as if it had failed for five days. */
  disableEndpoint(id: string, options: CallOptions = {}): Promise<WebhookEndpoint> {
    return this.caller.read<WebhookEndpoint>({ op: op.disableSandboxEndpoint, params: [id], signal: options.signal });
  }
}
