<?php
// A receiver of webhooks, with its sweep. It needs nothing but PHP 8:
//
//   TILL_WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:3000 receiver.php
//
// and from cron, every five minutes:
//
//   TILL_API_KEY=till_… TILL_URL=http://127.0.0.1:8080/v1 php receiver.php

declare(strict_types=1);

const TOLERANCE = 5 * 60; // seconds
const MAX_BODY = 1 << 20;

/**
 * Throws unless this very delivery was signed with our secret, a short time
 * ago. The body is the bytes as they came.
 */
function verify(string $key, array $server, string $body): void
{
    $id = $server['HTTP_WEBHOOK_ID'] ?? '';
    $timestamp = $server['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if ($id === '' || !preg_match('/^[0-9]{1,12}\z/', $timestamp)) {
        throw new RuntimeException('a header is missing or wrong');
    }
    if (abs(time() - (int) $timestamp) > TOLERANCE) {
        throw new RuntimeException('too old, or from the future');
    }
    $want = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $server['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $given) { // two during a rotation
        if (hash_equals($want, $given)) {
            return;
        }
    }
    throw new RuntimeException('no signature matches');
}

// The steps of a payment's money. It only goes forward: what comes twice, or in
// another order, tells a step that was taken before.
const NOT_PAID = 1, PAID = 2, TAKEN_BACK = 3;
const STEPS = [
    'payment.failed' => NOT_PAID, 'payment.expired' => NOT_PAID,
    'payment.success' => PAID, 'payment.late_success' => PAID,
    'payment.reversed' => TAKEN_BACK,
];

/**
 * Runs work on the shop, which stands for two tables of your database and a
 * cursor, as one transaction: nobody else is at it, and what work has changed
 * is written at the end.
 */
function transaction(callable $work): mixed
{
    $path = getenv('SHOP') ?: sys_get_temp_dir() . '/shop.json';
    $lock = fopen("$path.lock", 'c');
    flock($lock, LOCK_EX);
    $shop = is_file($path) ? json_decode((string) file_get_contents($path), true, 32, JSON_THROW_ON_ERROR) : [
        'steps' => [], // of each payment, the last step
        'orders' => [], // of each order that is paid, the payment that paid it
        'log' => null, // which event log
        'cursor' => 0, // how far the sweep has read it
    ];
    $result = $work($shop);
    if (file_put_contents("$path.new", json_encode($shop)) === false || !rename("$path.new", $path)) {
        throw new RuntimeException('not stored');
    }
    fclose($lock);
    return $result;
}

/**
 * Does what an event asks of us, once. Webhooks and the sweep both end here. It
 * goes by the kind of the event: the status of a payment stays what it was when
 * money comes late, or is taken back.
 */
function react(array &$shop, array $event): void
{
    $payment = $event['data']['payment'] ?? null;
    $step = STEPS[$event['type'] ?? ''] ?? 0;
    if ($payment === null || $step <= ($shop['steps'][$payment['id']] ?? 0)) {
        return; // nothing about money, or nothing new
    }
    $shop['steps'][$payment['id']] = $step;
    $order = $payment['reference'] ?? $payment['id'];
    $by = $shop['orders'][$order] ?? null;
    if ($step === NOT_PAID && $by === null) {
        error_log("not paid: $order"); // say so to the customer
    } elseif ($step === PAID && $by === null) {
        $shop['orders'][$order] = $payment['id'];
        error_log("ship: $order");
    } elseif ($step === PAID) {
        error_log("give back: {$payment['id']}, $order is paid already"); // the customer tried twice
    } elseif ($step === TAKEN_BACK && $by === $payment['id']) {
        unset($shop['orders'][$order]);
        error_log("stop: $order, the money was taken back");
    }
}

/**
 * Reads the event log from where it was left to its end: what no webhook
 * brought is found here. A log that is another, or ends before our cursor, was
 * restored from a backup: it is read from its beginning, which repeats nothing.
 */
function sweep(string $base, string $apiKey): void
{
    do {
        $after = transaction(fn (array &$shop) => $shop['cursor']);
        $answer = file_get_contents("$base/events?after=$after&limit=200", false, stream_context_create(['http' => [
            'header' => "X-Api-Key: $apiKey", 'timeout' => 30, 'ignore_errors' => true, 'follow_location' => 0,
        ]]));
        $status = (int) (explode(' ', $http_response_header[0] ?? '')[1] ?? 0);
        if ($answer === false || $status !== 200 && $status !== 409) {
            throw new RuntimeException("status $status");
        }
        $page = json_decode($answer, true, 32, JSON_THROW_ON_ERROR);
        $ended = transaction(function (array &$shop) use ($page, $status): bool {
            if ($status === 409 || $shop['log'] !== null && $shop['log'] !== $page['log_id']) {
                error_log("the log was set back: see the guide, 'Read the event log'");
                $shop['log'] = $page['log_id'] ?? null;
                $shop['cursor'] = 0;
                return false;
            }
            foreach ($page['items'] as $event) {
                react($shop, $event);
            }
            $ended = $page['next_after'] === $shop['cursor'];
            $shop['log'] = $page['log_id'];
            $shop['cursor'] = $page['next_after'];
            return $ended;
        });
    } while (!$ended);
}

if (PHP_SAPI === 'cli') {
    sweep((string) getenv('TILL_URL'), (string) getenv('TILL_API_KEY'));
    exit;
}
$key = base64_decode(preg_replace('/^whsec_/', '', (string) getenv('TILL_WEBHOOK_SECRET')), true);
try {
    $body = (string) file_get_contents('php://input', false, null, 0, MAX_BODY);
    if (!$key) {
        throw new RuntimeException('TILL_WEBHOOK_SECRET is missing');
    }
    verify($key, $_SERVER, $body);
    $event = json_decode($body, true, 32, JSON_THROW_ON_ERROR);
} catch (RuntimeException | JsonException) {
    http_response_code(400);
    exit('refused');
}
try {
    transaction(fn (array &$shop) => react($shop, $event));
    http_response_code(204); // also for what came before
} catch (Throwable) {
    http_response_code(500); // it will come again
}
