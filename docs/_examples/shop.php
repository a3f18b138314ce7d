<?php

require __DIR__ . '/vendor/autoload.php';

$pdo = new PDO('sqlite:shop.db');
$pdo->exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT)');

$till = new Till\Client(getenv('TILL_BASE_URL'), fn () => getenv('TILL_API_KEY'), expect: 'test');
$store = new Till\Store\PdoStore($pdo);
$store->install();

// Your one function. Webhooks, the event log and the sweep all end here, and each change calls it
// once, inside a transaction of your database.
$teller = new Till\Teller($till, $store, function (Till\Change $c, PDO $db): void {
    if ($c->paid()) { // success, or money that came late
        $db->prepare("UPDATE orders SET state = 'paid' WHERE id = ?")->execute([$c->order]);
        echo "ship: $c->order\n";
    } elseif ($c->takenBack()) {
        $db->prepare("UPDATE orders SET state = 'stopped' WHERE id = ?")->execute([$c->order]);
    } elseif ($c->failed()) {
        echo "not paid: $c->order {$c->payment->failure_reason}\n";
    }
});

$pdo->beginTransaction(); // one commit: the order, and the wish to be paid with its key
$pdo->exec("INSERT OR IGNORE INTO orders VALUES ('ORDER-1042', 'open')");
$teller->collect(order: 'ORDER-1042', method: 'mtn_momo', country: 'CG', amount: Till\Money::minor('5000', 'XAF'),
    phone: '242061234567', description: 'Two loaves');
$pdo->commit();

$payment = $teller->wait('ORDER-1042', 90); // sends, and reads until it is final
echo "the payment is $payment->status\n";
