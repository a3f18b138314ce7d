import http from "node:http";
import { Teller, Till } from "till-sdk";
import { fileStore, nodeWebhook } from "till-sdk/node";

const { TILL_BASE_URL, TILL_API_KEY, TILL_WEBHOOK_SECRET, PORT } = process.env;
const till = new Till({ baseUrl: TILL_BASE_URL, apiKey: () => TILL_API_KEY });
const store = await fileStore("till-store"); // with a database: pgStore(pool)
const teller = new Teller(till, store, (change) => {
  if (change.paid) console.log("ship:", change.payment.reference); // once, inside the transaction that remembers it
}, { foreign: true }); // of payments too that were made without this store
http.createServer(nodeWebhook(teller, TILL_WEBHOOK_SECRET)).listen(Number(PORT), "127.0.0.1"); // signature, age, duplicates, order
