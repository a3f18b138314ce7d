<?php

declare(strict_types=1);

// A shop that receives webhooks with plain PHP and the SDK for PHP: php -S runs this file for each request.

require __DIR__ . '/../../sdk/php/src/autoload.php';

$pdo = new PDO('sqlite:' . getenv('FOLDER') . '/shop.db', options: [PDO::ATTR_TIMEOUT => 10, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$store = new Till\Store\PdoStore($pdo);
$store->install();
$pdo->exec('CREATE TABLE IF NOT EXISTS acted (payment TEXT, amount TEXT)');
$teller = new Till\Teller(new Till\Client('http://127.0.0.1:1/v1', 'till_test_a_b'), $store, static function (Till\Change $c, PDO $db): void {
    if ($c->paid()) {
        $db->prepare('INSERT INTO acted VALUES (?, ?)')->execute([$c->payment->id, $c->payment->amount->value]);
    }
}, foreign: true);
$teller->receive((string) getenv('TILL_WEBHOOK_SECRET'), Till\Request::fromGlobals())->emit();
