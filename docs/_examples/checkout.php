<?php

require __DIR__ . '/vendor/autoload.php';

$pdo = new PDO('sqlite:pages.db');
$pdo->exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT)');

$till = new Till\Client(getenv('TILL_BASE_URL'), fn () => getenv('TILL_API_KEY'), expect: 'test');
$store = new Till\Store\PdoStore($pdo);
$store->install();

$teller = new Till\Teller($till, $store, function (Till\Change $c, PDO $db): void {
    if ($c->overpaid()) { // paid once more: not another order
        echo "give back: {$c->extra()}\n";
    } elseif ($c->paid()) { // the amount is that of the wish
        $db->prepare("UPDATE orders SET state = 'paid' WHERE id = ?")->execute([$c->order]);
        echo "ship: $c->order\n";
    } elseif ($c->otherAmount() || $c->takenBack()) {
        $db->prepare("UPDATE orders SET state = 'stopped' WHERE id = ?")->execute([$c->order]);
    } elseif ($c->failed()) { // it expired or was cancelled
        echo "not paid: $c->order\n";
    }
});

$pdo->beginTransaction(); // one commit: the order, and the wish to be paid with its key
$pdo->exec("INSERT OR IGNORE INTO orders VALUES ('ORDER-1042', 'open')");
$teller->checkout(order: 'ORDER-1042', amount: Till\Money::minor('5000', 'XAF'), description: 'Two loaves',
    return_url: 'https://shop.example/done');
$pdo->commit();

$page = $teller->sendCheckout('ORDER-1042'); // makes the page, once
echo "send the customer to $page->url\n";
$checkout = $teller->waitCheckout('ORDER-1042', 90); // a server has cron and a webhook instead
echo "the checkout is $checkout->state\n";
