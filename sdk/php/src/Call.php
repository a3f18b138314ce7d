<?php

declare(strict_types=1);

namespace Till;

/** One call with its values. */
final class Call
{
    public const MAX_ANSWER = 32 << 20; // 200 payments with all they may hold
    private const MAX_RETRY_AFTER = 24 * 3600.0; // bounds what a header can ask for

    /**
     * @param array{string, string, string, string} $op
     * @param string[] $params of the path, in order
     * @param array<string, string> $query
     */
    public function __construct(
        public readonly array $op,
        public readonly array $params = [],
        public readonly array $query = [],
        /** Rendered once; every try sends the same bytes. */
        public readonly ?string $body = null,
        public readonly string $accept = 'application/json',
        /** The idempotency key, for errors. */
        public readonly string $key = '',
        /** The service may take so many seconds on purpose. */
        public readonly int $wait = 0,
    ) {
    }

    public function url(string $base): string
    {
        $path = $this->op[2];
        foreach ($this->params as $p) {
            $path = preg_replace_callback('/\{[a-z_]+\}/', static fn () => rawurlencode($p), $path, 1);
        }

        return $base . $path . ($this->query ? '?' . http_build_query($this->query, '', '&', PHP_QUERY_RFC3986) : '');
    }

    /** How many seconds to wait before repeat n, counted from 0. Random is between 0 and 1. */
    public static function delay(int $n, float $retryAfter, float $random): float
    {
        $d = $n < 5 ? 0.25 * 2 ** $n : 8.0;

        return max($d * (0.5 + $random / 2), $retryAfter + $retryAfter * $random / 4);
    }

    /** Reads a date of HTTP; null if it is none. */
    public static function date(string $text): ?int
    {
        foreach (['D, d M Y H:i:s \G\M\T', 'l, d-M-y H:i:s \G\M\T', 'D M j H:i:s Y'] as $form) {
            $at = \DateTimeImmutable::createFromFormat('!' . $form, preg_replace('/ {2,}/', ' ', $text), new \DateTimeZone('UTC'));
            if ($at !== false) {
                return $at->getTimestamp();
            }
        }

        return null;
    }

    /**
     * Reads Retry-After, in seconds or as a date. A date is held against the date of the answer, so that a wrong clock of
     * ours does not matter.
     */
    public static function retryAfter(string $text, string $date, int $now): float
    {
        $text = trim($text);
        if (preg_match('/^[+-]?[0-9]{1,10}$/D', $text) === 1) {
            $d = (float) $text;
        } else {
            $at = $text === '' ? null : self::date($text);
            if ($at === null) {
                return 0.0;
            }
            $d = (float) ($at - (self::date($date) ?? $now));
        }

        return min(max($d, 0.0), self::MAX_RETRY_AFTER);
    }
}
