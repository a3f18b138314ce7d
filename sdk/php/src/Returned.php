<?php

declare(strict_types=1);

namespace Till;

/** The way back from a checkout's page, and what it says. */
final class Returned
{
    public const PAID = 'paid';
    public const OPEN = 'open'; // an ask may still bring money, or the customer turned back
    public const CLOSED = 'closed'; // expired or cancelled
    private const TOLERANCE = 600; // s, either way

    /**
     * Returns what the way back says of a checkout, if the checkout's return_secret signed it within ten minutes of now, which
     * is this machine's clock if it is not given. Checkout is the id that you keep with the order, query that of the address to
     * which the customer came back, as $_GET. It is a hint for the page that you show: ship by the event checkout.paid, or by a
     * read of the checkout. Who kept the address can come again within those minutes.
     */
    public static function verify(#[\SensitiveParameter] string $secret, string $checkout, array $query, ?float $now = null): string
    {
        $value = static fn (string $name): string => is_string($query[$name] ?? null) ? $query[$name] : '';
        [$state, $at, $given] = [$value('till_state'), $value('till_time'), $value('till_signature')];
        if ($secret === '') {
            throw new ReturnError('no_secret');
        }
        if ($state === '' || $at === '' || $given === '') {
            throw new ReturnError('unsigned');
        }
        $mac = hash_hmac('sha256', "return\n$checkout\n$state\n$at", $secret, true);
        $want = rtrim(strtr(base64_encode($mac), '+/', '-_'), '=');
        if (!hash_equals($want, $given) || $value('till_checkout') !== $checkout || preg_match('/^[0-9]{1,12}$/D', $at) !== 1) {
            throw new ReturnError('altered');
        }
        $age = ($now ?? microtime(true)) - (int) $at;
        if ($age > self::TOLERANCE) {
            throw new ReturnError('too_old');
        }
        if ($age < -self::TOLERANCE) {
            throw new ReturnError('too_new');
        }

        return $state;
    }
}
