import type { EventType } from "./events.js";
import type { Payment, Payout } from "./types.gen.js";

/** What news about payments and payouts have alike. */
export interface News {
  /** As `payment.success`. */
  kind: EventType;
  /** Your id of what is paid; "" for a payment that this outbox did not make. */
  order: string;
  /** As the payment has it. */
  reference: string;
  attempt: number;
  idempotency_key: string;
  /** The money came after it had failed or expired. */
  late: boolean;
  /** Another attempt of the order was paid before: give this one back. */
  alreadyPaid: boolean;
  /** "" where a read brought the news. */
  event_id: string;
  sequence: number;
}

/** News about a payment. */
export interface PaymentChange extends News {
  payment: Payment;
  payout: null;
  /** The customer has paid: success, or money that came late. */
  paid: boolean;
  /** It ended without money. */
  failed: boolean;
  /** The operator took the money back. */
  takenBack: boolean;
  paidOut: false;
  payoutFailed: false;
}

/** News about a payout. */
export interface PayoutChange extends News {
  payment: null;
  payout: Payout;
  paid: false;
  failed: false;
  takenBack: false;
  /** The recipient has the money. */
  paidOut: boolean;
  /** It ended, and its money is yours again. */
  payoutFailed: boolean;
}

/** News about an attempt. */
export type Change = PaymentChange | PayoutChange;
