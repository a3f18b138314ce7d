// Every call of the API by the SDK for TypeScript. The reference shows the parts
// between the marks; TestEveryCallOfThePagesRuns runs the program.
import { Links, Money, Till, newSecret } from "till-sdk";

const { TILL_BASE_URL, TILL_API_KEY, SHOP_URL: shop } = process.env;
const till = new Till({ baseUrl: TILL_BASE_URL, apiKey: () => TILL_API_KEY });
const order = { key: crypto.randomUUID(), payout: crypto.randomUUID(), refund: crypto.randomUUID(), checkout: crypto.randomUUID(), link: crypto.randomUUID() };
const soon = () => new Promise((done) => setTimeout(done, 200));
let secret;

// call: createPayment
let payment = await till.payments.create({
  method: "mtn_momo", country: "CG", amount: Money.minor("5000", "XAF"),
  customer: { phone: "242061230035" }, reference: "ORDER-1042",
  idempotency_key: order.key, // drawn and stored with the order before this call
});
// end
while (payment.status !== "success") {
  await soon();
  // call: getPayment
  payment = await till.payments.get(payment.id);
  // end
}
// call: listPayments
for await (const p of till.payments.all({ status: "success" })) {
  console.log(p.id, p.amount.value);
}
// end
// call: listPaymentAttempts
const attempts = await till.payments.attempts(payment.id);
// end
// call: listPaymentEvents
const history = await till.payments.events(payment.id);
// end

// call: listPaymentMethods
const methods = await till.paymentMethods.list();
// end
// call: predictPaymentMethod
const prediction = await till.paymentMethods.predict("06 123 45 67", "CG");
// end
// call: listWallets
const wallets = await till.wallets.list();
// end
// call: listTransactions
for await (const t of till.transactions.all({ currency: "XAF" })) {
  console.log(t.sequence, t.type, t.amount.value);
}
// end

// call: createRefund
let refund = await till.refunds.create({
  payment_id: payment.id, amount: Money.minor("500", "XAF"), reason: "not_delivered",
  idempotency_key: order.refund, // without an amount, all that is left goes back
});
// end
// call: getRefund
refund = await till.refunds.get(refund.id);
// end
// call: cancelRefund
refund = await till.refunds.cancel(refund.id);
// end
// call: listRefunds
for await (const r of till.refunds.all({ status: "cancelled" })) {
  console.log(r.id, r.payment_id, r.amount.value);
}
// end
// call: listPaymentRefunds
const refunds = await till.refunds.of(payment.id);
// end
// call: listRefundAttempts
const given = await till.refunds.attempts(refund.id);
// end
// call: listRefundEvents
const steps = await till.refunds.events(refund.id);
// end

// call: createCheckout
const made = await till.checkouts.create({
  amount: Money.minor("5000", "XAF"), reference: "ORDER-1043", description: "Two loaves",
  return_url: "https://shop.example/done?order=1043",
  idempotency_key: order.checkout, // keep made.return_secret with the order, send the customer to made.url
});
// end
// call: getCheckout
let checkout = await till.checkouts.get(made.id);
// end
// call: cancelCheckout
checkout = await till.checkouts.cancel(checkout.id);
// end
// call: listCheckouts
for await (const c of till.checkouts.all({ state: "cancelled" })) {
  console.log(c.id, c.reference, c.amount.value);
}
// end

// call: createLink
const links = new Links(till);
let link = await links.create({
  title: "School fees", open_amount: { currency: "XAF", min: "500" },
  idempotency_key: order.link, // put link.url on a poster, or into a chat
});
// end
// call: getLink
link = await links.get(link.id);
// end
// call: updateLink
link = await links.update(link.id, { active: false });
// end
// call: listLinks
for await (const l of links.all({ active: "false" })) {
  console.log(l.id, l.title, l.url);
}
// end

// call: createPayout
let payout = await till.payouts.create({
  method: "mtn_momo", country: "CG", amount: Money.minor("500", "XAF"),
  recipient: { phone: "242061230020" }, // the sandbox sends it after 5 s
  idempotency_key: order.payout,
});
// end
// call: getPayout
payout = await till.payouts.get(payout.id);
// end
// call: cancelPayout
payout = await till.payouts.cancel(payout.id);
// end
// call: listPayouts
for await (const p of till.payouts.all({ status: "cancelled" })) {
  console.log(p.id, p.amount.value);
}
// end
// call: listPayoutAttempts
const sends = await till.payouts.attempts(payout.id);
// end
// call: listPayoutEvents
const changes = await till.payouts.events(payout.id);
// end

// call: createWebhookEndpoint
secret = newSecret(); // store it first; then this call may be repeated
const endpoint = await till.webhooks.create({ url: shop + "/till", events: ["*"], secret });
// end
// call: listWebhookEndpoints
const endpoints = await till.webhooks.list();
// end
// call: getWebhookEndpoint
const read = await till.webhooks.get(endpoint.id);
// end
// call: updateWebhookEndpoint
const changed = await till.webhooks.update(endpoint.id, { description: "the shop" });
// end
// call: testWebhookEndpoint
const test = await till.webhooks.test(endpoint.id);
// end
// call: rotateWebhookSecret
secret = newSecret();
const rotated = await till.webhooks.rotateSecret(endpoint.id, { secret, overlap_seconds: 3600 });
// end
// call: replayEvents
const replayed = await till.webhooks.replay(endpoint.id, { from_sequence: 1 });
// end

// call: listEvents
const page = await till.events.read(0, { limit: 200, wait: 30 }); // after 0
// end
const event = page.items[0];
// call: getEvent
const one = await till.events.get(event.id);
// end
// call: redeliverEvent
const redelivered = await till.events.redeliver(event.id, { endpoint_id: endpoint.id });
// end
// call: listDeliveries
const deliveries = await till.webhooks.deliveries(endpoint.id, { status: "pending", limit: 50 });
// end
// call: disableSandboxEndpoint
const disabled = await till.sandbox.disableEndpoint(endpoint.id);
// end
// call: deleteWebhookEndpoint
await till.webhooks.delete(endpoint.id);
// end

// call: createApiKey
let key = await till.apiKeys.create({ name: "reports", scopes: ["payments:read"] });
// end
// call: getMe
const me = await till.me();
// end
// call: listApiKeys
const keys = await till.apiKeys.list();
// end
// call: rotateApiKey
key = await till.apiKeys.rotate(key.id, { overlap_seconds: 3600 });
// end
// call: revokeApiKey
const revoked = await till.apiKeys.revokeAll(key.id); // with the keys that it made
// end

const waiting = await till.payments.create({
  method: "mtn_momo", country: "CG", amount: Money.minor("700", "XAF"), customer: { phone: "242061230000" }, idempotency_key: crypto.randomUUID(),
});
for (let open = 0; open === 0; await soon()) {
  // call: listSandboxPrompts
  const prompts = await till.sandbox.prompts();
  // end
  open = prompts.items.length;
}
// call: decideSandboxPrompt
const decision = await till.sandbox.decide(waiting.id, "approve");
// end
// call: listSandboxStories
const stories = await till.sandbox.stories();
// end
