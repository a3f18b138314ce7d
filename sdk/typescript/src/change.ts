import type { MoneyValue } from "./money.js";
import type { CheckoutSnapshot, EventKind, FieldError, Payment, Payout, Refund } from "./types.gen.js";

/** What news about payments, payouts, refunds and checkouts have alike. */
export interface News {
  /** As `payment.success`; or `payment.refused`, `.lapsed`, `.lost`, which are no events of the service, and so for payouts, refunds and checkouts. */
  kind: EventKind;
  /** Your id of what is paid; "" for a payment that this outbox did not make: see the option `foreign`. */
  order: string;
  /** As the payment, payout, refund or checkout has it. */
  reference: string;
  /** Of a refund, which one of the order's; 0 if it was made elsewhere. */
  attempt: number;
  idempotency_key: string;
  /** The money came after it had failed, expired or been cancelled. */
  late: boolean;
  /** Another attempt of the order was paid before: give this one back. */
  alreadyPaid: boolean;
  /** "" where no event brought the news. */
  event_id: string;
  sequence: number;
  /** Why it was refused, lapsed or lost: a code of the service, or `stale`. */
  problem: string;
  /** Of the problem, for people. */
  detail: string;
  errors: FieldError[];
}

/** News about a payment. */
export interface PaymentChange extends News {
  payment: Payment;
  payout: null;
  refund: null;
  checkout: null;
  left: null;
  /** The customer has paid: success, or money that came late. */
  paid: boolean;
  /** It ended without money. */
  failed: boolean;
  /** The operator took the money back. */
  takenBack: boolean;
  paidOut: false;
  payoutFailed: false;
  refunded: false;
  refundFailed: false;
  refused: false;
  lapsed: false;
  lost: false;
  overpaid: false;
  otherAmount: false;
  /** The payment, if another attempt of the order was paid before: it is to be given back; "" otherwise. */
  extra: string;
}

/** News about a payout. */
export interface PayoutChange extends News {
  payment: null;
  payout: Payout;
  refund: null;
  checkout: null;
  left: null;
  paid: false;
  failed: false;
  takenBack: false;
  /** The recipient has the money. */
  paidOut: boolean;
  /** It ended, and its money is yours again. */
  payoutFailed: boolean;
  refunded: false;
  refundFailed: false;
  refused: false;
  lapsed: false;
  lost: false;
  overpaid: false;
  otherAmount: false;
  extra: "";
}

/** News about a refund. */
export interface RefundChange extends News {
  payment: null;
  payout: null;
  refund: Refund;
  checkout: null;
  /** What of its payment can still go back, with `refunded`; null if the service does not know the payment. */
  left: MoneyValue | null;
  paid: false;
  failed: false;
  takenBack: false;
  paidOut: false;
  payoutFailed: false;
  /** The customer has the money back. Book it by `refund.id`. */
  refunded: boolean;
  /** It ended, and its money is yours again. */
  refundFailed: boolean;
  refused: false;
  lapsed: false;
  lost: false;
  overpaid: false;
  otherAmount: false;
  extra: "";
}

/** News about a checkout. A customer who declines on its page may pay by another number, so that is no news. */
export interface CheckoutChange extends News {
  payment: null;
  payout: null;
  refund: null;
  checkout: CheckoutSnapshot;
  left: null;
  /** The customer has paid, and the amount is that of your wish. */
  paid: boolean;
  /** It expired or was cancelled. */
  failed: boolean;
  takenBack: false;
  paidOut: false;
  payoutFailed: false;
  refunded: false;
  refundFailed: false;
  refused: false;
  lapsed: false;
  lost: false;
  /** It was paid once more. Give back the payment `extra`: the order was shipped when it was paid the first time. */
  overpaid: boolean;
  /** It says of itself that it was paid, and shows another amount or currency than your wish. Do not ship: a person looks. */
  otherAmount: boolean;
  /** The payment that is to be given back: the second one of an overpaid checkout, or the one that paid an order that was paid before; "" otherwise. */
  extra: string;
}

/** News about an attempt that the service does not have. */
export interface EndedChange extends News {
  payment: null;
  payout: null;
  refund: null;
  checkout: null;
  left: null;
  paid: false;
  failed: false;
  takenBack: false;
  paidOut: false;
  payoutFailed: false;
  refunded: false;
  refundFailed: false;
  /** The service does not take it, and why: nothing exists. */
  refused: boolean;
  /** It was not sent in its time: nothing exists that somebody could pay. */
  lapsed: boolean;
  /** The service does not know a payment or checkout any more that it had, or a payout or refund that it may have had: a person looks. */
  lost: boolean;
  overpaid: false;
  otherAmount: false;
  extra: "";
}

/** News about an attempt. */
export type Change = PaymentChange | PayoutChange | RefundChange | CheckoutChange | EndedChange;
