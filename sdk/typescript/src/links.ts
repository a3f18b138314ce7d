import type { Caller, Query } from "./call.js";
import { encode, render } from "./json.js";
import * as op from "./operations.gen.js";
import { all } from "./page.js";
import { create, type CallOptions, type Paged, type PaymentFilter } from "./payments.js";
import type { CreateLink, Link, LinkPage, UpdateLink } from "./types.gen.js";

/** Narrows a list; what is absent does not. Both dates are inclusive. */
export type LinkFilter = Pick<PaymentFilter, "from_date" | "to_date" | "order"> & { active?: "true" | "false" };

/** The calls about addresses that anybody can pay on: `new Links(till)`. Who does not use them does not load them. */
export class Links {
  private readonly caller: Caller;

  constructor(till: { /** @internal */ readonly caller: Caller }) {
    this.caller = till.caller;
  }

  /**
   * Makes an address that anybody can pay on: each customer gets a checkout of their own. The key must be stored
   * before. No money is asked by it: after `Unclear` make the same call with the same key again, which answers what
   * the first one made.
   */
  create(l: CreateLink, options: CallOptions = {}): Promise<Link> {
    return create<Link>(this.caller, op.createLink, undefined, l, options);
  }

  /** Reads a link. What came in by it is the list of its checkouts. */
  get(id: string, options: CallOptions = {}): Promise<Link> {
    return this.caller.read<Link>({ op: op.getLink, params: [id], signal: options.signal });
  }

  /** Changes what is set: its title and its end, and whether it is switched on. What is paid for never changes. */
  update(id: string, l: UpdateLink, options: CallOptions = {}): Promise<Link> {
    return this.caller.read<Link>({ op: op.updateLink, params: [id], body: encode(render(l)), signal: options.signal });
  }

  /** Lists links, newest first, with their total. */
  page(filter: Paged<LinkFilter> = {}, options: CallOptions = {}): Promise<LinkPage> {
    return this.caller.read<LinkPage>({ op: op.listLinks, query: { ...filter }, signal: options.signal });
  }

  /** Goes through all links that match, each once, whatever changes meanwhile. */
  all(filter: LinkFilter = {}, options: CallOptions = {}): AsyncGenerator<Link, void, undefined> {
    return all({ ...filter }, (query: Query) => this.page(query as LinkFilter, options));
  }
}
