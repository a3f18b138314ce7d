import type { State } from "./store.js";

export type OrderErrorCode = "no_attempt" | "still_open" | "may_have_arrived" | "not_lost" | "not_stuck" | "other_write" | "attempt_open" | "already_paid" | "not_paid";

const words: Record<OrderErrorCode, string> = {
  no_attempt: "has no attempt",
  still_open: "has no outcome yet",
  may_have_arrived: "has an attempt that may have arrived, so it cannot be withdrawn",
  not_lost: "has no attempt that is lost, and only such a one is sent again by hand",
  not_stuck: "has no open attempt to abandon",
  other_write: "was changed by another program at the same moment",
  attempt_open: "has an open attempt",
  already_paid: "is paid already",
  not_paid: "is not paid",
};

/** What cannot be done with an order. */
export class OrderError extends Error {
  override name = "OrderError";
  constructor(
    readonly code: OrderErrorCode,
    readonly order: string,
  ) {
    super(`till: order ${order} ${words[code]}`);
  }
}

/** The order has an attempt with another wish that may still bring money; or a refund that may still give it back. */
export class AttemptOpen extends OrderError {
  override name = "AttemptOpen";
  constructor(
    order: string,
    readonly state: State,
    /** When the customer's time ends, or when it is sent no more. */
    readonly expires_at: Date,
  ) {
    super("attempt_open", order);
  }
}

/** An attempt for the order was paid. */
export class AlreadyPaid extends OrderError {
  override name = "AlreadyPaid";
  constructor(order: string) {
    super("already_paid", order);
  }
}

/** The outcome is not known yet. */
export class StillOpen extends OrderError {
  override name = "StillOpen";
  constructor(order: string) {
    super("still_open", order);
  }
}

export type InvalidMember = "order" | "method" | "amount" | "phone" | "payment" | "metadata" | "description or reference";

/** Says what is wrong with a wish before anything was written. */
export class InvalidWish extends Error {
  override name = "InvalidWish";
  constructor(
    readonly member: InvalidMember,
    readonly problem: string,
  ) {
    super(`till: ${member} ${problem}`);
  }
}
