import { Money, Teller, Till } from "till-sdk";
import { fileStore } from "till-sdk/node";

const till = new Till({ baseUrl: process.env.TILL_BASE_URL, apiKey: () => process.env.TILL_API_KEY, expect: "test" });
const store = await fileStore("till-store");

// Your one function. Webhooks, the event log and the sweep all end here, and
// each change calls it once.
const teller = new Teller(till, store, (change) => {
  if (change.paid) console.log("ship:", change.order); // success, or money that came late
  else if (change.takenBack) console.log("stop:", change.order);
  else if (change.failed) console.log("not paid:", change.order, change.payment.failure_reason);
});

// The wish and its key are written before anything is sent.
await store.update((tx) =>
  teller.collect(tx, {
    order: "ORDER-1042", method: "mtn_momo", country: "CG", amount: Money.minor("5000", "XAF"),
    phone: "242061234567", description: "Two loaves",
  }));
const payment = await teller.wait("ORDER-1042", 90_000); // sends, and reads until it is final
console.log("the payment is", payment.status);
