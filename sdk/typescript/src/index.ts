/**
 * The TypeScript SDK of Till, which collects money from mobile money wallets. It does the duties of a
 * client, so that a shop that crashes, loses answers and hears everything twice asks each customer once and
 * ships each order once.
 *
 * `Till` makes calls: it repeats what may be repeated, within a deadline and a budget, and tells three kinds
 * of failure apart: `Refused` (nothing exists), `Unavailable` (nothing happened, try later) and `Unclear` (it
 * may have happened). A `Store` is three tables in your database. A `Teller` is both and one function of
 * yours. Start reading there.
 *
 * @module
 */
export { Till, type TillOptions } from "./client.js";
export type { Try } from "./call.js";
export { Misuse, Refused, TillError, Unavailable, Unclear, type Failure, type MisuseCode } from "./error.js";
export { Exact, type Decimal, type Json, type Timestamp } from "./json.js";
export { Money, MoneyError, type MoneyErrorCode, type MoneyValue } from "./money.js";
export { Phone, PhoneError, type PhoneErrorCode, type PhoneRule } from "./phone.js";
export type { CallOptions, Paged, PaymentFilter, Payments } from "./payments.js";
export type { PayoutFilter, Payouts } from "./payouts.js";
export type { RefundFilter, Refunds } from "./refunds.js";
export type { CheckoutFilter, Checkouts } from "./checkouts.js";
export { Links, type LinkFilter } from "./links.js";
export { ReturnError, verifyReturn, type QueryLike, type ReturnErrorCode, type ReturnState } from "./return.js";
export type { TransactionFilter, Transactions } from "./transactions.js";
export type { ApiKeys } from "./apikeys.js";
export type { Events } from "./events.js";
export type { PaymentMethods } from "./paymentmethods.js";
export type { Sandbox } from "./sandbox.js";
export type { Wallets } from "./wallets.js";
export { newSecret, type WebhookEndpoints } from "./webhookendpoints.js";
export { Teller, type CheckoutWish, type Collect, type GiveBack, type PayOut, type Received } from "./teller.js";
export type { Attention, Report, TellerOptions } from "./core.js";
export type { Change, CheckoutChange, EndedChange, PaymentChange, PayoutChange, RefundChange } from "./change.js";
export type { Progress } from "./outbox.js";
export { AlreadyPaid, AttemptOpen, InvalidWish, OrderError, StillOpen, type InvalidMember, type OrderErrorCode } from "./ordererror.js";
export { SweepFailed } from "./sweep.js";
export type { Cursor, Decision, Kind, Row, Settlement, State, Store, Subject } from "./store.js";
export { BadSignature, MissingHeader, TooNew, TooOld, verify, WebhookError, type HeadersLike, type WebhookErrorCode } from "./webhook.js";
export { apiVersion, version } from "./operations.gen.js";
export type * from "./types.gen.js";
