<?php

declare(strict_types=1);

namespace Till;

/** Deliveries: who signed them, and when. */
final class Webhook
{
    public const MAX_DELIVERY = 1 << 20;
    private const TOLERANCE = 300; // s, either way
    private const MAX_SIGNATURES = 16;

    private static function decode(#[\SensitiveParameter] string $text): ?string
    {
        $found = base64_decode($text, true);

        return $found !== false && base64_encode($found) === $text ? $found : null;
    }

    private static function secret(#[\SensitiveParameter] mixed $text): string
    {
        $secret = is_string($text) && str_starts_with($text, 'whsec_') ? self::decode(substr($text, 6)) : null;
        if ($secret === null || strlen($secret) < 24 || strlen($secret) > 64) {
            throw new BadSecret('till: a webhook secret is whsec_ and the base64 of 24 to 64 bytes');
        }

        return $secret;
    }

    /**
     * Returns the event of a delivery if one of the secrets signed it within five minutes of now, which is this machine's
     * clock if it is not given. The body is the bytes as they came, before anything parsed them. Signatures are looked at before the age, so that a stranger learns nothing about the clock.
     *
     * @param string|string[] $secrets
     */
    public static function verify(#[\SensitiveParameter] string|array $secrets, Request $request, ?float $now = null): Event
    {
        $all = (array) $secrets;
        if (!$all) {
            throw new BadSecret('till: there is no webhook secret');
        }
        [$id, $stamp, $given] = [$request->header('webhook-id'), $request->header('webhook-timestamp'), $request->header('webhook-signature')];
        if ($id === '' || $stamp === '' || trim($given) === '') {
            throw new MissingHeader();
        }
        if (strlen($request->body) > self::MAX_DELIVERY) {
            throw new TooLarge();
        }
        if (preg_match('/^(0|[1-9][0-9]{0,11})$/D', $stamp) !== 1) {
            throw new MissingHeader();
        }
        $good = false;
        foreach ($all as $text) {
            $good = self::signed(self::secret($text), $id, $stamp, $given, $request->body) || $good;
        }
        if (!$good) {
            throw new BadSignature();
        }
        $skew = (int) $stamp - ($now ?? microtime(true));
        if ($skew < -self::TOLERANCE) {
            throw new TooOld((int) $skew);
        }
        if ($skew > self::TOLERANCE) {
            throw new TooNew((int) $skew);
        }
        try {
            $e = Event::fromJson(Json::parse($request->body));
        } catch (\JsonException|\TypeError) {
            throw new Malformed();
        }
        if ((string) $e->id === '' || (string) $e->type === '') {
            throw new Malformed();
        }

        return $e;
    }

    /** Whether one of the signatures is that of the secret. */
    private static function signed(#[\SensitiveParameter] string $secret, string $id, string $stamp, string $given, string $body): bool
    {
        $want = hash_hmac('sha256', "$id.$stamp.$body", $secret, true);
        $found = false;
        foreach (array_slice(preg_split('/\s+/', trim($given)) ?: [], 0, self::MAX_SIGNATURES) as $signature) {
            $got = str_starts_with($signature, 'v1,') ? self::decode(substr($signature, 3)) : null;
            if ($got !== null && hash_equals($want, $got)) {
                $found = true;
            }
        }

        return $found;
    }
}
