<?php

declare(strict_types=1);

// Mistakes that can be switched on; the suite catches each.

use Till\Client;
use Till\Cursor;
use Till\Decision;
use Till\Money;
use Till\Request;
use Till\Row;
use Till\Settlement;
use Till\Store;
use Till\Subject;
use Till\Transport;
use Till\Tried;

const MUTANTS = [
    'new_key_per_try', 'key_not_stored', 'body_anew', 'no_age_check', 'signature_over_parsed', 'duplicates_by_event_id', 'rank_ignored',
    'conflict_retried', 'retry_after_ignored', 'float_amount', 'offset_paging', 'unknown_status_final', 'function_outside',
    'lapse_forgotten', 'foreign_handed_over', 'history_shipped',
    'refund_new_key_per_try', 'refund_booked_by_amount', 'refund_booked_on_202',
    'ask_shipped', 'overpaid_forgotten', 'failed_ask_ends',
];

/** Whether a shop hears of asks as of payments, as one should not. */
function asksAlone(string $mutant): bool
{
    return $mutant === 'ask_shipped' || $mutant === 'failed_ask_ends';
}

function uuid(): string
{
    return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex(random_bytes(16)), 4));
}

/** Carries requests, dies where it is told to, and makes mistakes. */
final class MutantTransport extends Transport
{
    public function __construct(private readonly Closure $crash, private readonly string $mutant)
    {
        parent::__construct();
    }

    public function send(Tried $t, string $method, string $url, array $headers, ?string $body, float $timeout, bool $fresh, ?callable $lines = null): void
    {
        $create = $method === 'POST' && preg_match('#/(payments|payouts|refunds|checkouts)$#', $url) === 1;
        $newKey = $create && ($this->mutant === 'new_key_per_try' || $this->mutant === 'refund_new_key_per_try' && str_ends_with($url, '/refunds'));
        $meant = $body;
        if ($newKey) {
            $body = preg_replace('/"idempotency_key":"[^"]*"/', '"idempotency_key":"' . uuid() . '"', $body);
        } elseif ($create && $this->mutant === 'body_anew') {
            $body = substr($body, 0, -1) . ',"description":"at ' . hrtime(true) . '"}';
        }
        parent::send($t, $method, $url, $headers, $body, $timeout, $fresh, $lines);
        for ($n = 0; $n < 3 && $t->status === 409 && $this->mutant === 'conflict_retried'; $n++) {
            $t->body = '';
            parent::send($t, $method, $url, $headers, $body, $timeout, $fresh, $lines);
        }
        if ($create && $t->reason === '') {
            ($this->crash)('after_send');
        }
        if ($this->mutant === 'retry_after_ignored') {
            unset($t->headers['retry-after']);
        } elseif ($this->mutant === 'unknown_status_final') {
            $known = 'pending|processing|success|failed|expired|cancelled';
            $t->body = preg_replace('/"status":"(?!(?:' . $known . ')")[a-z_]+","method"/', '"status":"failed","method"', $t->body);
        } elseif (asksAlone($this->mutant)) {
            $t->body = preg_replace('/"checkout":(?=\{"id":"[^"]*","link_id":(?:null|"[^"]*"),"n":)/', '"hidden":', $t->body);
        } elseif ($newKey && preg_match('/"idempotency_key":"[^"]*"/', $meant, $m) === 1) {
            $t->body = preg_replace('/"idempotency_key":"[^"]*"/', $m[0], $t->body);
        }
    }
}

/** Dies where it is told to, and makes mistakes. */
final class MutantStore implements Store
{
    public static string $event = ''; // which event a request brings

    public function __construct(private readonly Store $store, private readonly Closure $crash, private readonly string $mutant)
    {
    }

    public function install(): void
    {
        $this->store->install();
    }

    public function attempts(string $kind, string $order): array
    {
        return $this->store->attempts($kind, $order);
    }

    public function put(Row $row): bool
    {
        ($this->crash)('before_write');

        return $this->store->put($row);
    }

    public function newest(string $kind, string $order): ?Row
    {
        return $this->store->newest($kind, $order);
    }

    public function due(int $now, int $limit): array
    {
        return $this->store->due($now, $limit);
    }

    public function count(Row $row, int $lease, int $next_at): bool
    {
        $counted = $this->store->count($row, $lease, $next_at);
        if ($counted) {
            ($this->crash)('after_count');
        }

        return $counted;
    }

    public function settle(Settlement $s): bool
    {
        ($this->crash)('after_answer');

        return $this->store->settle($s);
    }

    public function open(int $now, int $limit): array
    {
        return $this->store->open($now, $limit);
    }

    public function since(int $from, string $afterKey, int $limit): array
    {
        return $this->store->since($from, $afterKey, $limit);
    }

    public function attention(int $from, int $limit): array
    {
        return $this->store->attention($from, $limit);
    }

    public function apply(string $subject, string $kind, string $key, callable $fn): void
    {
        if ($this->mutant === 'duplicates_by_event_id') {
            $subject = self::$event ?: uuid();
        }
        $this->store->apply($subject, $kind, $key, function (mixed $tx, Subject $s, array $rows) use ($fn): Decision {
            if (in_array($this->mutant, ['rank_ignored', 'duplicates_by_event_id'], true)) {
                $s->rank = 0;
                foreach ($rows as $row) {
                    $row->status = ''; // it says the same
                }
            }
            $decision = $fn($tx, $s, $rows);
            ($this->crash)('after_function');

            return $decision;
        });
    }

    public function cursor(string $name): Cursor
    {
        return $this->store->cursor($name);
    }

    public function moveCursor(Cursor $c, bool $reset): void
    {
        $this->store->moveCursor($c, $reset);
    }
}

/** A delivery as a receiver with a mistake takes it. */
function mutated(string $mutant, array $secrets, array $headers, string $body): Request
{
    MutantStore::$event = $mutant === 'duplicates_by_event_id' ? $headers['webhook-id'] ?? '' : '';
    if ($mutant === 'signature_over_parsed' && ($value = json_decode($body)) !== null) {
        $body = json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
    } elseif ($mutant === 'no_age_check') {
        foreach ($secrets as $secret) { // it signs a good delivery as if it came now
            $sign = static fn (string $stamp) => 'v1,' . base64_encode(hash_hmac('sha256', ($headers['webhook-id'] ?? '') . ".$stamp.$body", base64_decode(substr($secret, 6)), true));
            if (str_contains($headers['webhook-signature'] ?? '', $sign($headers['webhook-timestamp'] ?? ''))) {
                $headers['webhook-timestamp'] = (string) time();
                $headers['webhook-signature'] = $sign($headers['webhook-timestamp']);
                break;
            }
        }
    }

    return new Request('POST', $headers, $body);
}

/** Reads an amount in units with floats, as one should not. */
function floatedMajor(array $c): Money
{
    return Money::minor((string) (int) ((float) $c['major'] * 100), $c['currency']);
}

/** Pages as one should not. */
function byOffset(Client $client, array $c): Generator
{
    $offset = 0;
    do {
        $page = $client->payments->page(status: $c['status'] ?? '', order: ($c['kind'] ?? '') === 'asc' ? 'asc' : '', limit: 200, offset: $offset);
        yield from array_values($page->items);
        $offset += count($page->items);
    } while ($page->items && $offset < $page->total);
}
