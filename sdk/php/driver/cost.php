<?php

declare(strict_types=1);

// Makes creates through the SDK and bare ones, in turns, and prints how many microseconds each took as JSON. Its arguments are the base
// address, the key and how many.

require __DIR__ . '/../src/autoload.php';

[, $base, $key, $n] = $argv;

function uuid(): string
{
    return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex(random_bytes(16)), 4));
}

$client = new Till\Client($base, $key);
$each = [
    // What a program without the SDK does: one request, and its answer read.
    'bare' => static function () use ($base, $key): void {
        $curl = curl_init($base . '/payments');
        curl_setopt_array($curl, [
            CURLOPT_POSTFIELDS => json_encode([
                'method' => 'mtn_momo', 'country' => 'CG', 'amount' => ['value' => '5000', 'currency' => 'XAF'], 'customer' => ['phone' => '242061234567'], 'idempotency_key' => uuid(),
            ]),
            CURLOPT_HTTPHEADER => ['X-Api-Key: ' . $key, 'Content-Type: application/json'], CURLOPT_RETURNTRANSFER => true,
        ]);
        json_decode((string) curl_exec($curl), false, 512, JSON_THROW_ON_ERROR);
        if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 202) {
            throw new RuntimeException((string) curl_getinfo($curl, CURLINFO_RESPONSE_CODE));
        }
    },
    'sdk' => static function () use ($client): void {
        $client->payments->create(new Till\CreatePayment('mtn_momo', Till\Money::minor('5000', 'XAF'), uuid(), new Till\CreatePaymentCustomer('242061234567'), country: 'CG'));
    },
];
$took = ['bare' => [], 'sdk' => []];
for ($i = 0; $i < (int) $n; $i++) {
    foreach ($each as $name => $make) {
        $began = hrtime(true);
        $make();
        $took[$name][] = intdiv(hrtime(true) - $began, 1000);
    }
}
echo json_encode($took), "\n";
