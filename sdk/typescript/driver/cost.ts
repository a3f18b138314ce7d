/**
 * Makes creates through the SDK and bare ones, in turns, and prints how many microseconds each took as JSON. Its arguments are the base address, the key and how many.
 */
import { randomUUID } from "node:crypto";
import { Money, Till } from "../src/index.js";

const [base, key, n] = process.argv.slice(2) as [string, string, string];
const till = new Till({ baseUrl: base, apiKey: key });
const wish = () => ({ method: "mtn_momo", country: "CG", amount: Money.minor("5000", "XAF"), customer: { phone: "242061234567" }, idempotency_key: randomUUID() });

/** What a program without the SDK does: one request, and its answer read. */
async function bare(): Promise<void> {
  const res = await fetch(base + "/payments", { method: "POST", headers: { "X-Api-Key": key, "Content-Type": "application/json" }, body: JSON.stringify(wish()) });
  await res.json();
  if (res.status !== 202) throw new Error(String(res.status));
}

const took: Record<string, number[]> = { bare: [], sdk: [] };
for (let i = 0; i < Number(n); i++)
  for (const [name, make] of [["bare", bare], ["sdk", () => till.payments.create(wish())]] as [string, () => Promise<unknown>][]) {
    const began = process.hrtime.bigint();
    await make();
    took[name]!.push(Number((process.hrtime.bigint() - began) / 1000n));
  }
console.log(JSON.stringify(took));
