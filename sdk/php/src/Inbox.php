<?php

declare(strict_types=1);

namespace Till;

/** Where all news ends: one function of yours, called once for each change. */
trait Inbox
{
    /** The time in ms, as exact as stores keep it. */
    private function now(): int
    {
        return (int) (($this->clock)() * 1000);
    }

    /** Orders the news of one payment, payout, refund or checkout; 0 is no news of an attempt, from 3 on the attempt has ended. */
    private static function rank(?string $status): int
    {
        return match ($status) {
            'pending', 'open' => 1,
            'processing' => 2,
            'success', 'failed', 'expired', 'cancelled' => 3,
            'late_success', 'paid' => 4, // money that comes to a checkout after it had expired wins
            'reversed', 'overpaid' => 5,
            default => 0,
        };
    }

    /** The road of webhooks and the log. Foreign hands over what this store did not make. */
    private function applyEvent(Event $e, ?Cursor $cursor, bool $foreign): void
    {
        [$noun, $status] = explode('.', (string) $e->type . '.', 3);
        $subject = match ($noun) {
            'payment' => $e->data?->payment,
            'payout' => $e->data?->payout,
            'refund' => $e->data?->refund,
            'checkout' => $e->data?->checkout,
            default => null,
        };
        if (self::rank($status) > 0 && $subject !== null) {
            $notOurs = $noun === 'checkout' && $this->onOther !== null ? fn (mixed $tx) => ($this->onOther)($e, $tx) : null;
            $this->applyChange(new Change((string) $e->type, event_id: (string) $e->id, sequence: (int) $e->sequence), $subject, $noun, $status, $cursor, $foreign, $notOurs);

            return;
        }
        if ($this->onOther === null) {
            return;
        }
        $this->store->apply((string) $e->id, '', '', function (mixed $tx, Subject $s) use ($e, $cursor): Decision {
            if (in_array($e->type, $s->seen, true)) {
                return new Decision(cursor: $cursor);
            }
            ($this->onOther)($e, $tx);

            return new Decision(new Subject($s->id, $s->rank, [...$s->seen, (string) $e->type], (int) $e->sequence), cursor: $cursor);
        });
    }

    /** The road of the sweep: the news is what the payment shows. A status that is not known is not final, and no news. */
    private function applyRead(Payment|Payout|Refund|Checkout|NewCheckout $one): void
    {
        $status = match (true) {
            $one instanceof Payment && $one->reversed_at !== null => 'reversed',
            ($one->late_success_at ?? null) !== null => 'late_success',
            default => self::statusOf($one),
        };
        if (self::rank($status) > 0) {
            $noun = match (true) {
                $one instanceof Payment => 'payment',
                $one instanceof Payout => 'payout',
                $one instanceof Refund => 'refund',
                default => 'checkout',
            };
            $this->applyChange(new Change("$noun.$status"), $one, $noun, $status, null, $this->foreign);
        }
    }

    /**
     * Adds to news of a refund what is left of its payment, and says by which kind and key of a row its order is found: a
     * refund that was not made by this outbox is its payment's. News that was seen needs neither.
     *
     * @return array{string, string}
     */
    private function ofPayment(Change $change, Refund $one, string $status): array
    {
        $own = $seen = false;
        $this->store->apply((string) $one->id, 'refund', $change->key, static function (mixed $tx, Subject $s, array $attempts) use ($status, &$own, &$seen): Decision {
            [$own, $seen] = [$attempts !== [], in_array($status, $s->seen, true)];

            return new Decision();
        });
        if ($seen || $own && !$change->refunded()) {
            return ['refund', $change->key];
        }
        try {
            $payment = $this->client->payments->get((string) $one->payment_id);
        } catch (Refused $e) {
            if ($e->code !== ErrorCode::PAYMENT_NOT_FOUND) {
                throw $e;
            }

            return ['refund', $change->key];
        }
        if ($change->refunded() && $payment->refunds !== null) {
            $change->left = Money::minor((string) $payment->refunds->refundable, (string) $payment->amount?->currency);
        }

        return $own ? ['refund', $change->key] : $this->ofCheckout($payment);
    }

    /**
     * Where all roads end. In one transaction: lock what is known; stop if this news was seen, or is older than what is known;
     * call the function; save. NotOurs(tx) hears of a checkout that this outbox did not make.
     */
    private function applyChange(
        Change $change,
        Payment|Payout|Refund|Checkout|CheckoutSnapshot $one,
        string $noun,
        string $status,
        ?Cursor $cursor,
        bool $foreign,
        ?callable $notOurs = null,
    ): void {
        $checkout = $one instanceof Checkout || $one instanceof CheckoutSnapshot ? $one : null;
        $change->checkout = $checkout;
        $change->payment = $one instanceof Payment ? $one : null;
        $change->payout = $one instanceof Payout ? $one : null;
        $change->refund = $one instanceof Refund ? $one : null;
        $change->key = strtolower((string) $one->idempotency_key);
        $change->reference = (string) $one->reference;
        $change->late = $status === 'late_success' || $checkout?->late === true;
        [$kind, $key] = [$noun, $change->key];
        $ask = $one instanceof Payment && $one->checkout !== null;
        if ($ask && $status !== 'reversed' && !$foreign) {
            return; // its checkout tells what became of the order
        }
        if ($ask || $one instanceof Refund && self::rank($status) >= 3) {
            if ($cursor !== null) {
                $this->pace(); // it may read the payment or checkout, and the log is read without haste
            }
            [$kind, $key] = $ask ? $this->ofCheckout($one) : $this->ofPayment($change, $one, $status);
        }
        if ($status === 'overpaid') { // it was paid once before, whether or not that was heard
            $first = clone $change;
            $first->kind = 'checkout.paid';
            $this->applyChange($first, $one, $noun, 'paid', null, $foreign);
        }
        $this->store->apply((string) $one->id, $kind, $key, function (mixed $tx, Subject $s, array $attempts) use ($change, $one, $checkout, $ask, $key, $status, $cursor, $foreign, $notOurs): Decision {
            if (in_array($status, $s->seen, true)) {
                return new Decision(cursor: $cursor);
            }
            $c = clone $change;
            $row = $page = null;
            foreach ($attempts as $a) {
                if ($a->key === $c->key) {
                    [$row, $c->order, $c->attempt] = [$a, $a->order, $a->attempt];
                } elseif ($a->key === $key) { // the payment or checkout of a refund that was made elsewhere; the checkout of an ask
                    [$c->order, $page] = [$a->order, $ask ? $a : null];
                } elseif ($a->paid() && $c->refund === null) { // of a payment there may be several refunds
                    $c->alreadyPaid = true;
                }
            }
            $known = $s;
            $s = new Subject($s->id, $s->rank, [...$s->seen, $status], max($s->sequence, $c->sequence));
            $d = new Decision($s, cursor: $cursor);
            if ($c->order === '' && $notOurs !== null) {
                $notOurs($tx);

                return $d;
            }
            if ($c->order === '' && (!$foreign || $checkout !== null) || $page !== null && $status !== 'reversed') {
                return new Decision(cursor: $cursor);
            }
            if ($row !== null && $this->paidBesides($row)) {
                $c->alreadyPaid = true;
            }
            if ($row !== null && $checkout !== null && Row::brought($status) && !self::wished($row, $checkout)) {
                return $this->differs($tx, $c, $row, $known, $cursor);
            }
            $rank = self::rank($status);
            if ($rank <= $s->rank) {
                return $d;
            }
            // The attempt may have ended under another id: a restored service made it
            // again. What it brought before is no news, but money after none is.
            $again = $row !== null && $s->rank < 3 && self::rank($row->status) >= 3;
            $s->rank = $rank;
            if ($again && !($row->unpaid() && Row::brought($status))) {
                $d->settle = $this->news($row, $one, $row->status);

                return $d;
            }
            if ($row !== null) {
                $d->settle = $this->news($row, $one, $status);
            } elseif ($page?->status === 'paid') {
                $d->settle = new Settlement($page->key, status: $status);
            }
            if ($row?->kind === 'checkout' && in_array($row->state, [Row::LAPSED, Row::REFUSED], true) && !Row::brought($status)) {
                return $d; // nobody had the address of a page that was told to be none
            }
            if ($rank >= 3) {
                ($this->onChange)($c, $tx);
            } elseif ($this->onProgress !== null && $checkout === null) {
                ($this->onProgress)($c, $tx);
            }

            return $d;
        });
    }

    /** What a change does to its row. */
    private function news(Row $row, Payment|Payout|Refund|Checkout|CheckoutSnapshot $one, string $status): Settlement
    {
        $s = new Settlement(
            $row->key,
            remote_id: (string) $one->id,
            status: $status,
            state: self::rank($status) >= 3 ? Row::ENDED : Row::TAKEN,
            send_until: self::expiry($one),
            next_at: $this->now() + $this->openAfter,
            problem: $row->problem !== Row::ABANDONED ? '' : null,
            details: $row->problem !== Row::ABANDONED ? '' : null,
        );
        if ($row->kind === 'checkout') {
            $s->details = Json::render((object) (['payment_id' => (string) $one->payment_id] + self::pageOf($row->details)));
        }

        return $s;
    }

    /**
     * Settles a row that is sent no more, as refused, lapsed or lost, and tells it: in one transaction, and once, because the
     * row must be as expected. It returns whether it was.
     */
    private function end(Row $row, Settlement $s): bool
    {
        $s->key = $row->key;
        $why = self::keptOf((string) $s->details);
        $reference = Json::parse($row->body)->reference ?? '';
        $change = new Change("$row->kind.$s->state", $row->order, (string) $reference, $row->attempt, $row->key, problem: (string) $s->problem, detail: $why['detail'], errors: $why['errors']);
        $done = false;
        $this->store->apply($row->key, $row->kind, $row->key, function (mixed $tx, Subject $_, array $attempts) use ($row, $s, $change, &$done): Decision {
            $c = clone $change;
            $done = false;
            foreach ($attempts as $a) {
                if ($a->key === $row->key) {
                    $done = in_array($a->state, $s->from, true) && ($s->lease === 0 || $a->lease === $s->lease);
                } elseif ($a->paid() && $row->kind !== 'refund') {
                    $c->alreadyPaid = true;
                }
            }
            if (!$done) {
                return new Decision();
            }
            $c->alreadyPaid = $c->alreadyPaid || $this->paidBesides($row);
            ($this->onChange)($c, $tx);

            return new Decision(settle: $s);
        });
        if ($done) {
            $row->state = $s->state;
        }

        return $done;
    }

    /** What a row keeps of an error, beside its code. */
    private static function detailsOf(CallError $e): string
    {
        $errors = array_map(static fn (FieldError $f) => ['pointer' => $f->pointer, 'code' => $f->code, 'detail' => $f->detail], $e->errors);

        return json_encode(['status' => $e->status, 'detail' => $e->detail, 'request_id' => $e->request_id, 'errors' => $errors], JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE);
    }

    /** @return array{status: int, detail: string, request_id: string, errors: FieldError[]} the same, read again */
    private static function keptOf(string $details): array
    {
        $kept = $details === '' ? null : json_decode($details);

        return [
            'status' => (int) ($kept->status ?? 0),
            'detail' => (string) ($kept->detail ?? ''),
            'request_id' => (string) ($kept->request_id ?? ''),
            'errors' => array_map(FieldError::fromJson(...), $kept->errors ?? []),
        ];
    }

    /** When the customer's time ends; 0 if nobody said it. */
    private static function expiry(Payment|Payout|Refund|Checkout|NewCheckout|CheckoutSnapshot $one): int
    {
        $at = $one->expires_at === null ? false : date_create_immutable($one->expires_at);

        return $at === false ? 0 : (int) $at->format('Uv');
    }
}
