# Every call of the API by the SDK for Python. The reference shows the parts between
# the marks; TestEveryCallOfThePagesRuns runs the program.
import os
import time
import uuid

import till
from till import Money

shop = os.environ["SHOP_URL"]
client = till.Till(os.environ["TILL_BASE_URL"], lambda: os.environ["TILL_API_KEY"])


class order:  # a shop draws keys once and stores them with the order
    key, payout, refund, checkout, link = (str(uuid.uuid4()) for _ in range(5))


# call: createPayment
payment = client.payments.create(till.CreatePayment(
    method="mtn_momo", country="CG", amount=Money.minor("5000", "XAF"),
    customer=till.CreatePaymentCustomer(phone="242061230035"), reference="ORDER-1042",
    idempotency_key=order.key,  # drawn and stored with the order before this call
))
# end
while payment.status != "success":
    time.sleep(0.2)
    # call: getPayment
    payment = client.payments.get(payment.id)
    # end
# call: listPayments
for p in client.payments.all(status="success"):
    print(p.id, p.amount.value)
# end
# call: listPaymentAttempts
attempts = client.payments.attempts(payment.id)
# end
# call: listPaymentEvents
history = client.payments.events(payment.id)
# end

# call: listPaymentMethods
methods = client.payment_methods.list()
# end
# call: predictPaymentMethod
prediction = client.payment_methods.predict("06 123 45 67", "CG")
# end
# call: listWallets
wallets = client.wallets.list()
# end
# call: listTransactions
for t in client.transactions.all(currency="XAF"):
    print(t.sequence, t.type, t.amount.value)
# end

# call: createRefund
refund = client.refunds.create(till.CreateRefund(
    payment_id=payment.id, amount=Money.minor("500", "XAF"), reason="not_delivered",
    idempotency_key=order.refund,  # without an amount, all that is left goes back
))
# end
# call: getRefund
refund = client.refunds.get(refund.id)
# end
# call: cancelRefund
refund = client.refunds.cancel(refund.id)
# end
# call: listRefunds
for r in client.refunds.all(status="cancelled"):
    print(r.id, r.payment_id, r.amount.value)
# end
# call: listPaymentRefunds
refunds = client.refunds.of(payment.id)
# end
# call: listRefundAttempts
given = client.refunds.attempts(refund.id)
# end
# call: listRefundEvents
steps = client.refunds.events(refund.id)
# end

# call: createCheckout
made = client.checkouts.create(till.CreateCheckout(
    amount=Money.minor("5000", "XAF"), reference="ORDER-1043", description="Two loaves",
    return_url="https://shop.example/done?order=1043",
    idempotency_key=order.checkout,  # keep made.return_secret with the order, send the customer to made.url
))
# end
# call: getCheckout
checkout = client.checkouts.get(made.id)
# end
# call: cancelCheckout
checkout = client.checkouts.cancel(checkout.id)
# end
# call: listCheckouts
for c in client.checkouts.all(state="cancelled"):
    print(c.id, c.reference, c.amount.value)
# end

# call: createLink
link = client.links.create(till.CreateLink(
    title="School fees", open_amount=till.CreateLinkOpenAmount(currency="XAF", min="500"),
    idempotency_key=order.link,  # put link.url on a poster, or into a chat
))
# end
# call: getLink
link = client.links.get(link.id)
# end
# call: updateLink
link = client.links.update(link.id, till.UpdateLink(active=False))
# end
# call: listLinks
for l in client.links.all(active="false"):
    print(l.id, l.title, l.url)
# end

# call: createPayout
payout = client.payouts.create(till.CreatePayout(
    method="mtn_momo", country="CG", amount=Money.minor("500", "XAF"),
    recipient=till.CreatePayoutRecipient(phone="242061230020"),  # the sandbox sends it after 5 s
    idempotency_key=order.payout,
))
# end
# call: getPayout
payout = client.payouts.get(payout.id)
# end
# call: cancelPayout
payout = client.payouts.cancel(payout.id)
# end
# call: listPayouts
for p in client.payouts.all(status="cancelled"):
    print(p.id, p.amount.value)
# end
# call: listPayoutAttempts
sends = client.payouts.attempts(payout.id)
# end
# call: listPayoutEvents
changes = client.payouts.events(payout.id)
# end

# call: createWebhookEndpoint
endpoint = client.webhooks.create(till.CreateWebhookEndpoint(url=shop + "/till", events=["*"]))
secret = endpoint.secret  # shown this once
# end
# call: listWebhookEndpoints
endpoints = client.webhooks.list()
# end
# call: getWebhookEndpoint
read = client.webhooks.get(endpoint.id)
# end
# call: updateWebhookEndpoint
changed = client.webhooks.update(endpoint.id, till.UpdateWebhookEndpoint(description="the shop"))
# end
# call: testWebhookEndpoint
test = client.webhooks.test(endpoint.id)
# end
# call: rotateWebhookSecret
secret = client.webhooks.rotate_secret(endpoint.id, till.RotateWebhookSecret(overlap_seconds=3600)).secret
# end
# call: replayEvents
replayed = client.webhooks.replay(endpoint.id, till.Replay(from_sequence=1))
# end

# call: listEvents
page = client.events.read(0, limit=200, wait=30)  # after 0
# end
event = page.items[0]
# call: getEvent
one = client.events.get(event.id)
# end
# call: redeliverEvent
redelivered = client.events.redeliver(event.id, till.Redeliver(endpoint_id=endpoint.id))
# end
# call: listDeliveries
deliveries = client.webhooks.deliveries(endpoint.id, status="pending", limit=50)
# end
# call: disableSandboxEndpoint
disabled = client.sandbox.disable_endpoint(endpoint.id)
# end
# call: deleteWebhookEndpoint
client.webhooks.delete(endpoint.id)
# end

# call: createApiKey
key = client.api_keys.create(till.CreateApiKey(name="reports", scopes=["payments:read"]))
# end
# call: getMe
me = client.me()
# end
# call: listApiKeys
keys = client.api_keys.list()
# end
# call: rotateApiKey
key = client.api_keys.rotate(key.id, till.RotateApiKey(overlap_seconds=3600))
# end
# call: revokeApiKey
revoked = client.api_keys.revoke_all(key.id)  # with the keys that it made
# end

waiting = client.payments.create(till.CreatePayment(
    method="mtn_momo", country="CG", amount=Money.minor("700", "XAF"),
    customer=till.CreatePaymentCustomer(phone="242061230000"), idempotency_key=str(uuid.uuid4()),
))
open_prompts = 0
while open_prompts == 0:
    time.sleep(0.2)
    # call: listSandboxPrompts
    prompts = client.sandbox.prompts()
    # end
    open_prompts = len(prompts.items)
# call: decideSandboxPrompt
decision = client.sandbox.decide(waiting.id, "approve")
# end
# call: listSandboxStories
stories = client.sandbox.stories()
# end
