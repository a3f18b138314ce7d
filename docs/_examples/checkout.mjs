import { Money, Teller, Till } from "till-sdk";
import { fileStore } from "till-sdk/node";

const till = new Till({ baseUrl: process.env.TILL_BASE_URL, apiKey: () => process.env.TILL_API_KEY, expect: "test" });
const store = await fileStore("till-pages");

const teller = new Teller(till, store, (change) => {
  if (change.overpaid) console.log("give back:", change.extra); // paid once more: not another order
  else if (change.paid) console.log("ship:", change.order); // the amount is that of the wish
  else if (change.otherAmount || change.takenBack) console.log("stop:", change.order);
  else if (change.failed) console.log("not paid:", change.order); // it expired or was cancelled
});

// The wish and its key are written before anything is sent.
await store.update((tx) =>
  teller.checkout(tx, {
    order: "ORDER-1042", amount: Money.minor("5000", "XAF"), description: "Two loaves", return_url: "https://shop.example/done",
  }));
const page = await teller.sendCheckout("ORDER-1042"); // makes the page, once
console.log("send the customer to", page.url);
const checkout = await teller.waitCheckout("ORDER-1042", 90_000); // a server has run and a webhook instead
console.log("the checkout is", checkout.state);
