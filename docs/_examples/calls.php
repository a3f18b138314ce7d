<?php

// Every call of the API by the SDK for PHP. The reference shows the parts between
// the marks; TestEveryCallOfThePagesRuns runs the program.

use Till\Money;

require __DIR__ . '/vendor/autoload.php';

function draw(): string // a shop draws one per order and stores it with the order
{
    $b = random_bytes(16);
    $b[6] = chr(ord($b[6]) & 0x0f | 0x40);
    $b[8] = chr(ord($b[8]) & 0x3f | 0x80);
    return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($b), 4));
}

$shop = getenv('SHOP_URL');
$till = new Till\Client(getenv('TILL_BASE_URL'), fn () => getenv('TILL_API_KEY'));
$order = (object) ['key' => draw(), 'payout' => draw(), 'refund' => draw(), 'checkout' => draw(), 'link' => draw()];

// call: createPayment
$payment = $till->payments->create(new Till\CreatePayment(
    method: 'mtn_momo', country: 'CG', amount: Money::minor('5000', 'XAF'),
    customer: new Till\CreatePaymentCustomer(phone: '242061230035'), reference: 'ORDER-1042',
    idempotency_key: $order->key, // drawn and stored with the order before this call
));
// end
while ($payment->status !== 'success') {
    usleep(200_000);
    // call: getPayment
    $payment = $till->payments->get($payment->id);
    // end
}
// call: listPayments
foreach ($till->payments->all(status: 'success') as $p) {
    echo $p->id, ' ', $p->amount->value, "\n";
}
// end
// call: listPaymentAttempts
$attempts = $till->payments->attempts($payment->id);
// end
// call: listPaymentEvents
$history = $till->payments->events($payment->id);
// end

// call: listPaymentMethods
$methods = $till->paymentMethods->list();
// end
// call: predictPaymentMethod
$prediction = $till->paymentMethods->predict('06 123 45 67', 'CG');
// end
// call: listWallets
$wallets = $till->wallets->list();
// end
// call: listTransactions
foreach ($till->transactions->all(currency: 'XAF') as $t) {
    echo $t->sequence, ' ', $t->type, ' ', $t->amount->value, "\n";
}
// end

// call: createRefund
$refund = $till->refunds->create(new Till\CreateRefund(
    payment_id: $payment->id, amount: Money::minor('500', 'XAF'), reason: 'not_delivered',
    idempotency_key: $order->refund, // without an amount, all that is left goes back
));
// end
// call: getRefund
$refund = $till->refunds->get($refund->id);
// end
// call: cancelRefund
$refund = $till->refunds->cancel($refund->id);
// end
// call: listRefunds
foreach ($till->refunds->all(status: 'cancelled') as $r) {
    echo $r->id, ' ', $r->payment_id, ' ', $r->amount->value, "\n";
}
// end
// call: listPaymentRefunds
$refunds = $till->refunds->of($payment->id);
// end
// call: listRefundAttempts
$given = $till->refunds->attempts($refund->id);
// end
// call: listRefundEvents
$steps = $till->refunds->events($refund->id);
// end

// call: createCheckout
$made = $till->checkouts->create(new Till\CreateCheckout(
    amount: Money::minor('5000', 'XAF'), reference: 'ORDER-1043', description: 'Two loaves',
    return_url: 'https://shop.example/done?order=1043',
    idempotency_key: $order->checkout, // keep $made->return_secret with the order, send the customer to $made->url
));
// end
// call: getCheckout
$checkout = $till->checkouts->get($made->id);
// end
// call: cancelCheckout
$checkout = $till->checkouts->cancel($checkout->id);
// end
// call: listCheckouts
foreach ($till->checkouts->all(state: 'cancelled') as $c) {
    echo $c->id, ' ', $c->reference, ' ', $c->amount->value, "\n";
}
// end

// call: createLink
$link = $till->links->create(new Till\CreateLink(
    title: 'School fees', open_amount: new Till\CreateLinkOpenAmount(currency: 'XAF', min: '500'),
    idempotency_key: $order->link, // put $link->url on a poster, or into a chat
));
// end
// call: getLink
$link = $till->links->get($link->id);
// end
// call: updateLink
$link = $till->links->update($link->id, new Till\UpdateLink(active: false));
// end
// call: listLinks
foreach ($till->links->all(active: 'false') as $l) {
    echo $l->id, ' ', $l->title, ' ', $l->url, "\n";
}
// end

// call: createPayout
$payout = $till->payouts->create(new Till\CreatePayout(
    method: 'mtn_momo', country: 'CG', amount: Money::minor('500', 'XAF'),
    recipient: new Till\CreatePayoutRecipient(phone: '242061230020'), // the sandbox sends it after 5 s
    idempotency_key: $order->payout,
));
// end
// call: getPayout
$payout = $till->payouts->get($payout->id);
// end
// call: cancelPayout
$payout = $till->payouts->cancel($payout->id);
// end
// call: listPayouts
foreach ($till->payouts->all(status: 'cancelled') as $p) {
    echo $p->id, ' ', $p->amount->value, "\n";
}
// end
// call: listPayoutAttempts
$sends = $till->payouts->attempts($payout->id);
// end
// call: listPayoutEvents
$changes = $till->payouts->events($payout->id);
// end

// call: createWebhookEndpoint
$endpoint = $till->webhooks->create(new Till\CreateWebhookEndpoint(url: "$shop/till", events: ['*']));
$secret = $endpoint->secret; // shown this once
// end
// call: listWebhookEndpoints
$endpoints = $till->webhooks->list();
// end
// call: getWebhookEndpoint
$read = $till->webhooks->get($endpoint->id);
// end
// call: updateWebhookEndpoint
$changed = $till->webhooks->update($endpoint->id, new Till\UpdateWebhookEndpoint(description: 'the shop'));
// end
// call: testWebhookEndpoint
$test = $till->webhooks->test($endpoint->id);
// end
// call: rotateWebhookSecret
$secret = $till->webhooks->rotateSecret($endpoint->id, new Till\RotateWebhookSecret(overlap_seconds: 3600))->secret;
// end
// call: replayEvents
$replayed = $till->webhooks->replay($endpoint->id, new Till\Replay(from_sequence: 1));
// end

// call: listEvents
$page = $till->events->read(after: 0, limit: 200, wait: 30);
// end
$event = $page->items[0];
// call: getEvent
$one = $till->events->get($event->id);
// end
// call: redeliverEvent
$redelivered = $till->events->redeliver($event->id, new Till\Redeliver(endpoint_id: $endpoint->id));
// end
// call: listDeliveries
$deliveries = $till->webhooks->deliveries($endpoint->id, status: 'pending', limit: 50);
// end
// call: disableSandboxEndpoint
$disabled = $till->sandbox->disableEndpoint($endpoint->id);
// end
// call: deleteWebhookEndpoint
$till->webhooks->delete($endpoint->id);
// end

// call: createApiKey
$key = $till->apiKeys->create(new Till\CreateApiKey(name: 'reports', scopes: ['payments:read']));
// end
// call: getMe
$me = $till->me();
// end
// call: listApiKeys
$keys = $till->apiKeys->list();
// end
// call: rotateApiKey
$key = $till->apiKeys->rotate($key->id, new Till\RotateApiKey(overlap_seconds: 3600));
// end
// call: revokeApiKey
$revoked = $till->apiKeys->revokeAll($key->id); // with the keys that it made
// end

$waiting = $till->payments->create(new Till\CreatePayment(
    method: 'mtn_momo', country: 'CG', amount: Money::minor('700', 'XAF'), customer: new Till\CreatePaymentCustomer(phone: '242061230000'), idempotency_key: draw(),
));
do {
    usleep(200_000);
    // call: listSandboxPrompts
    $prompts = $till->sandbox->prompts();
    // end
} while (count($prompts->items) === 0);
// call: decideSandboxPrompt
$decision = $till->sandbox->decide($waiting->id, 'approve');
// end
// call: listSandboxStories
$stories = $till->sandbox->stories();
// end
