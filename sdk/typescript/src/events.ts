import type { Caller } from "./call.js";
import { encode, render } from "./json.js";
import * as op from "./operations.gen.js";
import type { CallOptions } from "./payments.js";
import type { Event, EventPage, Redeliver, Redelivered } from "./types.gen.js";

/** The calls about the event log. */
export class Events {
  /** @internal */
  constructor(private readonly caller: Caller) {}

  /** Returns the events after a sequence, oldest first. It waits for one if there is none, as many milliseconds, at most 60 s. */
  read(after: number, { limit, wait = 0, signal }: CallOptions & { limit?: number; wait?: number } = {}): Promise<EventPage> {
    const query = { after, limit, wait: wait >= 1000 ? Math.floor(wait / 1000) : undefined };
    return this.caller.read<EventPage>({ op: op.listEvents, query, wait, signal });
  }

  get(id: string, options: CallOptions = {}): Promise<Event> {
    return this.caller.read<Event>({ op: op.getEvent, params: [id], signal: options.signal });
  }

  /** Posts an event again, to one endpoint or to all. */
  redeliver(id: string, to: Redeliver = {}, options: CallOptions = {}): Promise<Redelivered> {
    return this.caller.read<Redelivered>({ op: op.redeliverEvent, params: [id], body: encode(render(to)), signal: options.signal });
  }
}
