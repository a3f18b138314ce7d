<?php
// A receiver of webhooks. It needs nothing but PHP 8:
//
//   TILL_WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:3000 receiver.php

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

/**
 * Stores an event and reports whether it is new. The folder stands for a table
 * of your database, with a unique key on the id.
 */
function add(string $folder, array $event): bool
{
    return @fopen($folder . '/event-' . hash('sha256', $event['id']), 'x') !== false;
}

/** Does the work. */
function work(string $folder, array $event): void
{
    $payment = $event['data']['payment'] ?? null;
    if ($payment === null) {
        return;
    }
    $file = fopen($folder . '/payment-' . hash('sha256', $payment['id']), 'c+');
    flock($file, LOCK_EX);
    if ($event['sequence'] <= (int) stream_get_contents($file)) {
        return; // older than what we know already
    }
    rewind($file);
    fwrite($file, (string) $event['sequence']);
    error_log("payment {$payment['id']} is {$payment['status']}"); // ship the goods here
}

$key = base64_decode(preg_replace('/^whsec_/', '', (string) getenv('TILL_WEBHOOK_SECRET')), true);
$folder = getenv('INBOX') ?: sys_get_temp_dir() . '/till-inbox';
if (!is_dir($folder)) {
    mkdir($folder, 0700, true);
}
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
$new = add($folder, $event);
http_response_code(204); // also for what came before
if (function_exists('fastcgi_finish_request')) {
    fastcgi_finish_request(); // the answer goes out now, the work comes after it
}
if ($new) {
    work($folder, $event);
}
