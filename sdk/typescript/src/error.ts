import type { FieldError } from "./types.gen.js";

/** What all errors of a call have in common. It holds no API key, no phone and no body. */
export interface Failure {
  /** Of the service, as `validation_failed`; "" if there was none. */
  code: string;
  /** Of HTTP; 0 if there was no answer. */
  status: number;
  /** For people. */
  detail: string;
  errors: FieldError[];
  /** Quote it when you ask for help. */
  request_id: string;
  /** In seconds; 0 if the service did not say. */
  retry_after: number;
  /** Of a create. */
  idempotency_key: string;
  /** How many requests were made. */
  tries: number;
  /** Why there was no good answer: timeout, reset, cut, not_json, redirect, … */
  reason: string;
  /** With `idempotency_key_reused`: whose key it is. */
  payment_id: string;
  payout_id: string;
  /** Likewise; with `refund_in_progress` the one that is open. */
  refund_id: string;
  /** With `refund_exceeds_payment`: what is left to give back, in minor units. */
  refundable: string;
}

export interface TillError extends Failure {}

/** An error of a call: `Refused`, `Unavailable` or `Unclear`. */
export class TillError extends Error {
  constructor(kind: string, failure: Failure, cause?: unknown) {
    const { status, code, reason, detail, errors, request_id } = failure;
    const words = [code, reason, detail].filter(Boolean).join(": ");
    const fields = errors.map((f) => `; ${f.pointer} ${f.code}`).join("");
    super(`till: ${kind}: ${status ? status + " " : ""}${words}${fields}${request_id ? ` (request ${request_id})` : ""}`, cause === undefined ? undefined : { cause });
    Object.assign(this, failure);
  }
}

/** The service does not do this. Of a create: nothing exists, and the key is not used up. */
export class Refused extends TillError {
  override name = "Refused";
  constructor(failure: Failure, cause?: unknown) {
    super("refused", failure, cause);
  }
}

/** Nothing happened, and it may be tried later. */
export class Unavailable extends TillError {
  override name = "Unavailable";
  constructor(failure: Failure, cause?: unknown) {
    super("unavailable", failure, cause);
  }
}

/** It may have happened. Ask again with the same key, never with another one. */
export class Unclear extends TillError {
  override name = "Unclear";
  constructor(failure: Failure, cause?: unknown) {
    super("unclear", failure, cause);
  }
}

/** A mistake in the program that uses this package. */
export class Misuse extends Error {
  override name = "Misuse";
  constructor(readonly code: MisuseCode) {
    super("till: " + misuses[code]);
  }
}

const misuses = {
  no_key: "there is no API key",
  bad_key: "the API key has characters that no key has",
  wrong_mode: "a test key where a live one is expected, or the other way round",
  no_idempotency_key: "a create needs an idempotency key that you have stored; see Teller",
  bad_base_url: "the base address is an https:// URL, or http:// on this machine",
  bad_option: "an option is not what it can be",
  in_a_page: "a key in a page is everybody's key: call Till from your server",
  bad_secret: "a webhook secret is whsec_ and the base64 of 24 to 64 bytes",
  no_progress: "the list does not go on",
};

export type MisuseCode = keyof typeof misuses;
