import { currencies } from "./currencies.gen.js";
import { decimalForm } from "./json.js";

/** An amount on the wire: minor units as text, and a currency. */
export interface MoneyValue {
  value: string;
  currency: string;
}

export type MoneyErrorCode = "bad_amount" | "bad_currency" | "other_currency" | "too_many_decimals" | "not_exact" | "negative" | "bad_parts";

/** A mistake with money. */
export class MoneyError extends Error {
  override name = "MoneyError";
  constructor(readonly code: MoneyErrorCode) {
    super("till: money: " + code);
  }
}

/** Bounds what arithmetic reads and makes, in digits. */
const maxDigits = 38;
/** Bounds split. */
const maxParts = 10_000;

/** A number is a float here, whatever it looks like. */
function text(v: unknown): string {
  if (typeof v === "bigint") return v.toString();
  if (typeof v !== "string") throw new TypeError('till: an amount is a text, as "5000", never a number');
  return v;
}

function places(currency: string): number {
  const n = currency.length === 3 ? currencies.findIndex((list) => list.split(" ").includes(currency)) : -1;
  if (n < 0) throw new MoneyError("bad_currency");
  return n;
}

/** Checks minor units of a currency. A program that writes its amounts itself needs this alone. @internal */
export function checkMinor(value: string | bigint, currency: string): [value: string, currency: string] {
  const digits = text(value);
  if (digits.length > maxDigits || !/^(0|[1-9][0-9]*)$/.test(digits)) throw new MoneyError("bad_amount");
  if (!/^[A-Z]{3}$/.test(text(currency))) throw new MoneyError("bad_currency");
  return [digits, currency];
}

/**
 * An amount in minor units of its currency: "5000" is 5 000 francs of XAF, which has no decimals, and 50
 * shillings of KES, which has two. Integers without bounds inside, never a float.
 */
export class Money implements MoneyValue {
  readonly value: string;
  readonly currency: string;

  private constructor(value: string, currency: string) {
    this.value = value;
    this.currency = currency;
  }

  /** An amount in minor units. */
  static minor(value: string | bigint, currency: string): Money {
    return new Money(...checkMinor(value, currency));
  }

  /** An amount of an answer: `Money.of(payment.amount)`. */
  static of(m: MoneyValue): Money {
    return m instanceof Money ? m : Money.minor(m.value, m.currency);
  }

  /** An amount in units of the currency: "50.00" of KES is "5000". */
  static major(amount: string, currency: string): Money {
    const decimals = places(text(currency));
    const parts = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/.exec(text(amount));
    if (!parts || parts[1]!.length > maxDigits) throw new MoneyError("bad_amount");
    const fraction = parts[2] ?? "";
    if (fraction.length > decimals) throw new MoneyError("too_many_decimals");
    return new Money(BigInt(parts[1]! + fraction.padEnd(decimals, "0")).toString(), currency);
  }

  private result(n: bigint): Money {
    if (n < 0n) throw new MoneyError("negative");
    return Money.minor(n, this.currency);
  }

  private both(other: MoneyValue): [bigint, bigint] {
    const o = Money.of(other);
    if (o.currency !== this.currency) throw new MoneyError("other_currency");
    return [BigInt(this.value), BigInt(o.value)];
  }

  add(other: MoneyValue): Money {
    const [a, b] = this.both(other);
    return this.result(a + b);
  }

  /** The difference, which is not negative. */
  subtract(other: MoneyValue): Money {
    const [a, b] = this.both(other);
    return this.result(a - b);
  }

  /** -1, 0 or 1. */
  compare(other: MoneyValue): -1 | 0 | 1 {
    const [a, b] = this.both(other);
    return a < b ? -1 : a > b ? 1 : 0;
  }

  /** Multiplies by a decimal, as "1.5". The result is exact, or an error. */
  times(factor: string): Money {
    if (!decimalForm.test(text(factor)) || factor.length > maxDigits) throw new MoneyError("bad_amount");
    const [whole, fraction = ""] = factor.split(".") as [string, string?];
    const product = BigInt(this.value) * BigInt(whole + fraction);
    const unit = 10n ** BigInt(fraction.length);
    if (product % unit !== 0n) throw new MoneyError("not_exact");
    return this.result(product / unit);
  }

  /** Divides into parts that add up; the first ones have what is left over. */
  split(parts: number): Money[] {
    if (!Number.isInteger(parts) || parts < 1 || parts > maxParts) throw new MoneyError("bad_parts");
    const [n, p] = [BigInt(this.value), BigInt(parts)];
    return Array.from({ length: parts }, (_, i) => this.result(n / p + (BigInt(i) < n % p ? 1n : 0n)));
  }

  /** The amount in units of the currency: "50.00". */
  toMajor(): string {
    const decimals = places(this.currency);
    const digits = this.value.padStart(decimals + 1, "0");
    return decimals ? digits.slice(0, -decimals) + "." + digits.slice(-decimals) : digits;
  }

  /** The amount for people: "5 000 XAF" in "fr", with the narrow spaces of French, "XAF 5,000" in every other language. */
  format(language: string): string {
    const french = language === "fr" || language.startsWith("fr-");
    const [whole, fraction] = this.toMajor().split(".") as [string, string?];
    const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, french ? "\u202f" : ",");
    const amount = grouped + (fraction ? (french ? "," : ".") + fraction : "");
    return french ? `${amount}\u00a0${this.currency}` : `${this.currency}\u00a0${amount}`;
  }

  toJSON(): MoneyValue {
    return { value: this.value, currency: this.currency };
  }
}
