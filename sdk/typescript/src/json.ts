import { decimals } from "./operations.gen.js";

/** A moment as the service writes it, RFC 3339 in UTC with six decimals. It stays a text, so that it can be sent back exactly as it came. */
export type Timestamp = string;

/** A number by its own digits, as a quantity: "1.5". Eighteen digits do not fit a float. */
export type Decimal = string;

/** What JSON can say. A number that no double holds is an `Exact`. */
export type Json = string | number | boolean | null | Exact | bigint | Json[] | { [member: string]: Json };

/** A JSON number that no double holds, by its digits. */
export class Exact {
  constructor(readonly digits: string) {}
  toString(): string {
    return this.digits;
  }
  toJSON(): string {
    return this.digits;
  }
}

/** @internal */
export const decimalForm = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/;

/** Your own data is not ours to read: in it a member of that name is nothing special. */
const yours = "metadata";

/**
 * Reads JSON without losing a digit: a decimal of the interface becomes its text, another number that
 * no double holds an Exact. JSON.parse looks first, so here everything is known to be JSON.
 *
 * @internal
 */
export function parse(text: string): unknown {
  JSON.parse(text);
  const token = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[^\s",:[\]{}]+|[^\s])/y;
  const next = (): string => token.exec(text)![1]!;
  const value = (t: string, name: string, ours: boolean): unknown => {
    if (t === "{") {
      const out: Record<string, unknown> = {};
      for (t = next(); t !== "}"; ) {
        const member = JSON.parse(t) as string;
        next();
        const read = value(next(), member, ours && member !== yours);
        Object.defineProperty(out, member, { value: read, writable: true, enumerable: true, configurable: true });
        if ((t = next()) === ",") t = next();
      }
      return out;
    }
    if (t === "[") {
      const out: unknown[] = [];
      for (t = next(); t !== "]"; ) {
        out.push(value(t, "", ours));
        if ((t = next()) === ",") t = next();
      }
      return out;
    }
    if (t[0] !== "-" && !(t[0]! >= "0" && t[0]! <= "9")) return JSON.parse(t);
    if (ours && decimals.includes(name)) return t;
    return String(Number(t)) === t ? Number(t) : new Exact(t);
  };
  return value(next(), "", true);
}

/**
 * Writes JSON: decimals of the interface as the digits of a number. What is undefined is left out; what
 * JSON cannot say is a TypeError.
 *
 * @internal
 */
export function render(v: unknown, name = "", ours = true): string {
  if (v !== null && typeof v === "object" && !(v instanceof Exact) && "toJSON" in v) v = (v as { toJSON(): unknown }).toJSON();
  if (ours && decimals.includes(name) && v !== null && v !== undefined) {
    const digits = v instanceof Exact ? v.digits : v;
    if (typeof digits !== "string" || !decimalForm.test(digits)) throw new TypeError(`till: ${name} is a decimal text, as "1.5"`);
    return digits;
  }
  if (v instanceof Exact || typeof v === "bigint") return String(v);
  if (Array.isArray(v)) return "[" + v.map((e) => render(e, "", ours)).join(",") + "]";
  if (v !== null && typeof v === "object") {
    const members = Object.entries(v).filter(([, e]) => e !== undefined);
    return "{" + members.map(([k, e]) => JSON.stringify(k) + ":" + render(e, k, ours && k !== yours)).join(",") + "}";
  }
  if (v === undefined || typeof v === "function" || typeof v === "symbol" || (typeof v === "number" && !Number.isFinite(v))) throw new TypeError("till: this is no JSON");
  return JSON.stringify(v);
}

/** @internal */
export const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;

/** Bytes as text; a mark of the byte order stays, because JSON has none. @internal */
export const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Reads a stream to its end; null if it has more bytes than that. @internal */
export async function readAll(stream: ReadableStream<Uint8Array> | null, most: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  if (stream)
    for (const reader = stream.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      if ((length += value.length) > most) {
        await reader.cancel();
        return null;
      }
      chunks.push(value);
    }
  return concat(...chunks);
}

/** @internal */
export function concat(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}
