<?php

declare(strict_types=1);

namespace Till;

/** What came of one request. */
final class Tried
{
    /** Codes of a 503 that took nothing. */
    public const NOTHING_HAPPENED = ['method_unavailable', 'payouts_held'];

    /** @var array<string, string> by their names in small letters */
    public array $headers = [];
    public string $body = '';
    public mixed $value = null; // the body, read
    public float $retry_after = 0.0;

    public function __construct(
        public int $status = 0,
        /** '' for a complete answer. */
        public string $reason = '',
        /** A byte may have been written. */
        public bool $sent = true,
        public ?Problem $problem = null,
    ) {
    }

    /** The service's word, '' if it said none. */
    public function code(): string
    {
        return (string) $this->problem?->code;
    }

    public function header(string $name): string
    {
        return $this->headers[strtolower($name)] ?? '';
    }

    /** Whether the failure may go away by itself. */
    public function passing(): bool
    {
        if ($this->reason !== '') {
            return !in_array($this->reason, ['certificate', 'cancelled', 'too_large', 'redirect'], true);
        }

        return in_array($this->status, [408, 429, 500, 502, 503, 504], true);
    }

    /** Whether it may have been done although the answer does not say so. */
    public function unanswered(): bool
    {
        if (!$this->sent || $this->reason === 'redirect') {
            return false;
        }

        return $this->reason !== '' || $this->status === 408 || $this->status >= 500 && !in_array($this->code(), self::NOTHING_HAPPENED, true);
    }

    /** Whether a call may be made again after this try. */
    public function repeatable(array $op): bool
    {
        return $this->passing() && ($op[3] !== 'never' || !$this->sent);
    }

    /**
     * The table of outcomes: done, refused, unavailable, unclear, or look (refused, if a read by the key finds nothing).
     * Before tells whether an earlier try had no answer: what was asked may exist then, whatever this answer says.
     */
    public function judge(array $op, bool $before): string
    {
        if ($this->reason === '' && $this->status >= 200 && $this->status < 300) {
            return 'done';
        }
        $said = in_array($this->reason, ['', 'redirect'], true);
        if ($op[1] === 'GET') {
            $answered = $said && $this->status >= 300 && $this->status < 500 && !in_array($this->status, [408, 429], true);

            return $answered ? 'refused' : 'unavailable';
        }
        $nothing = $this->status === 429 || $this->status === 503 && in_array($this->code(), self::NOTHING_HAPPENED, true);

        return match (true) {
            !$this->sent => $before ? 'unclear' : 'unavailable',
            !$said => 'unclear',
            $nothing => $before ? 'unclear' : 'unavailable',
            $this->status === 422 && $this->code() === 'idempotency_key_reused' => 'refused',
            $this->status === 408 || $this->status >= 500 => 'unclear',
            $op[3] !== 'key' => 'refused', // the answer to a repeat is as good as the first
            in_array($this->status, [400, 413, 415, 422], true) => $before ? 'look' : 'refused',
            default => $before ? 'unclear' : 'refused',
        };
    }

    /** Makes the error of a verdict. */
    public function failure(string $verdict, string $key, int $tries): CallError
    {
        $p = $this->problem;
        $class = ['unavailable' => Unavailable::class, 'unclear' => Unclear::class][$verdict] ?? Refused::class;

        return new $class(
            code: $this->code(),
            status: $this->status,
            detail: (string) $p?->detail,
            errors: $p?->errors ?? [],
            request_id: $this->header('X-Request-Id') ?: (string) $p?->request_id,
            retry_after: $this->retry_after,
            idempotency_key: $key,
            tries: $tries,
            reason: $this->reason,
            payment_id: $p?->payment_id,
            payout_id: $p?->payout_id,
            refund_id: $p?->refund_id,
            refundable: $p?->refundable,
        );
    }
}
