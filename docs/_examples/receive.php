<?php // webhook.php: the web server runs it for each request

require __DIR__ . '/vendor/autoload.php';

$pdo = new PDO('sqlite:' . __DIR__ . '/shop.db', options: [PDO::ATTR_TIMEOUT => 10]);
$store = new Till\Store\PdoStore($pdo);
$store->install();
$till = new Till\Client(getenv('TILL_BASE_URL'), fn () => getenv('TILL_API_KEY'));
$teller = new Till\Teller($till, $store, function (Till\Change $c, PDO $db): void {
    if ($c->paid()) { // once, inside the transaction that remembers it
        file_put_contents('php://stderr', "ship: {$c->payment->reference}\n");
    }
}, foreign: true); // of payments too that were made without this store
$teller->receive(getenv('TILL_WEBHOOK_SECRET'), Till\Request::fromGlobals())->emit(); // signature, age, duplicates, order
