<?php

declare(strict_types=1);

namespace Till;

/** The calls about the statement. */
final class Transactions
{
    private const MAX_LINE = 1 << 20; // of an export

    public function __construct(private readonly Client $c)
    {
    }

    /** Lists transactions, newest first, with their total. Both dates are inclusive. */
    public function page(
        string $type = '',
        string $currency = '',
        string $payment_id = '',
        string $payout_id = '',
        string $reference = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $order = '',
        ?int $limit = null,
        ?int $offset = null,
    ): TransactionPage {
        return $this->c->read(TransactionPage::class, new Call(Operations::LIST_TRANSACTIONS, query: Page::query(get_defined_vars())));
    }

    /** @return \Generator<Transaction> all transactions that match */
    public function all(
        string $type = '',
        string $currency = '',
        string $payment_id = '',
        string $payout_id = '',
        string $reference = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $order = '',
    ): \Generator {
        return Page::all(Page::query(get_defined_vars()), fn (array $q) => $this->c->read(TransactionPage::class, new Call(Operations::LIST_TRANSACTIONS, query: $q)));
    }

    /**
     * Streams the whole statement that the filter leaves, as of now, oldest first, to a function. It throws Unavailable if the
     * stream was cut: what was given is then not the whole.
     *
     * @param callable(Transaction): void $each
     */
    public function export(
        callable $each,
        string $type = '',
        string $currency = '',
        string $payment_id = '',
        string $payout_id = '',
        string $reference = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
    ): void {
        $query = get_defined_vars();
        unset($query['each']);
        $call = new Call(Operations::LIST_TRANSACTIONS, query: Page::query($query), accept: 'application/jsonl');
        $given = false;
        $thrown = null;
        for ($n = 1;; $n++) { // a repeat would give lines twice, so only before the first
            $rest = '';
            $take = static function (string $part) use (&$rest, &$given, &$thrown, $each): bool {
                $lines = explode("\n", $rest . $part);
                $rest = array_pop($lines);
                try {
                    foreach ($lines as $line) {
                        if (trim($line) !== '') {
                            $transaction = Transaction::fromJson(Json::parse($line));
                            $given = true;
                            $each($transaction);
                        }
                    }
                } catch (\Throwable $e) {
                    $thrown = $e;
                }

                return $thrown === null && strlen($rest) <= self::MAX_LINE;
            };
            $t = $this->c->attempt($call, $this->c->key(), lines: $take);
            if ($t->status === 200 && $t->reason === '' && $thrown === null) {
                $take("\n"); // what had no end
            }
            if ($thrown !== null && !$thrown instanceof \JsonException && !$thrown instanceof \TypeError) {
                throw $thrown; // of the caller's own function
            }
            if ($thrown !== null || $t->status === 200 && $t->reason === 'too_large') {
                $t->reason = 'cut';
            }
            $verdict = $t->judge($call->op, false);
            if ($verdict === 'done') {
                return;
            }
            $wait = Call::delay($n - 1, $t->retry_after, ($this->c->random)());
            if ($given || $n >= $this->c->tries || !$t->passing() || $wait > $this->c->deadline) {
                throw $t->failure($verdict, '', $n);
            }
            ($this->c->sleep)($wait);
        }
    }
}
