import type { Caller } from "./call.js";
import { encode, render } from "./json.js";
import type { Operation } from "./operation.js";
import * as op from "./operations.gen.js";
import type { CallOptions } from "./payments.js";
import type {
  CreateWebhookEndpoint, DeliveryList, DeliveryStatus, NewWebhookEndpoint, Replay, Replayed, RotateWebhookSecret, UpdateWebhookEndpoint, WebhookEndpoint, WebhookEndpointList, WebhookTest,
} from "./types.gen.js";

/** A call that may be repeated if the caller drew the secret. */
const withSecret = ([method, path, repeat]: Operation, { secret }: { secret?: string | null }): Operation => [method, path, secret ? "safe" : repeat];

/** Draws a secret for an endpoint: store it, then send it. */
export const newSecret = (): string => "whsec_" + btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));

/** The calls about addresses that events are posted to. To receive them, see `Teller.webhook`. */
export class WebhookEndpoints {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  private make<A>(operation: Operation, params: string[], body: unknown, { signal }: CallOptions): Promise<A> {
    return this.caller.read<A>({ op: operation, params, ...(body === undefined ? {} : { body: encode(render(body)) }), signal });
  }

  /**
   * Registers an address. Its secret is in the answer, this once. With a secret of your own (`newSecret`) the
   * call is repeated like a read: it finds what the first try made. Without one, a create without an answer
   * is not repeated: list the endpoints, and delete the one whose secret you have not seen.
   */
  create(e: CreateWebhookEndpoint, options: CallOptions = {}): Promise<NewWebhookEndpoint> {
    return this.make(withSecret(op.createWebhookEndpoint, e), [], e, options);
  }

  list(options: CallOptions = {}): Promise<WebhookEndpointList> {
    return this.make(op.listWebhookEndpoints, [], undefined, options);
  }

  get(id: string, options: CallOptions = {}): Promise<WebhookEndpoint> {
    return this.make(op.getWebhookEndpoint, [id], undefined, options);
  }

  /** Changes what is set. */
  update(id: string, e: UpdateWebhookEndpoint, options: CallOptions = {}): Promise<WebhookEndpoint> {
    return this.make(op.updateWebhookEndpoint, [id], e, options);
  }

  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.make(op.deleteWebhookEndpoint, [id], undefined, options);
  }

  /** Gives an endpoint a new secret. With a secret of your own the call is repeated like a read. */
  rotateSecret(id: string, r: RotateWebhookSecret = {}, options: CallOptions = {}): Promise<NewWebhookEndpoint> {
    return this.make(withSecret(op.rotateWebhookSecret, r), [id], r, options);
  }

  /** Posts a test event. */
  test(id: string, options: CallOptions = {}): Promise<WebhookTest> {
    return this.make(op.testWebhookEndpoint, [id], undefined, options);
  }

  /** Lists what became of each event, newest first. */
  deliveries(id: string, { signal, ...query }: CallOptions & { status?: DeliveryStatus; limit?: number; before?: number } = {}): Promise<DeliveryList> {
    return this.caller.read<DeliveryList>({ op: op.listDeliveries, params: [id], query, signal });
  }

  /** Posts a stretch of the log again. */
  replay(id: string, r: Replay, options: CallOptions = {}): Promise<Replayed> {
    return this.make(op.replayEvents, [id], r, options);
  }
}
