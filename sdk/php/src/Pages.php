<?php

declare(strict_types=1);

namespace Till;

/** Orders that are paid on a page: whose an ask is, and what a page says of the wish. */
trait Pages
{
    /**
     * Says by which kind and key of a row the order of a payment is found that may be an ask of a checkout. A checkout that
     * the service does not know is nobody's.
     *
     * @return array{string, string}
     */
    private function ofCheckout(Payment $payment): array
    {
        if ($payment->checkout !== null) {
            try {
                return ['checkout', strtolower((string) $this->client->checkouts->get((string) $payment->checkout->id)->idempotency_key)];
            } catch (Refused $e) {
                if ($e->code !== ErrorCode::CHECKOUT_NOT_FOUND) {
                    throw $e;
                }
            }
        }

        return ['payment', strtolower((string) $payment->idempotency_key)];
    }

    /** @return Row[] the attempts of an order in the other way to be paid: by a number, or on a page */
    private function besides(string $kind, string $order): array
    {
        return match ($kind) {
            'payment' => $this->store->attempts('checkout', $order),
            'checkout' => $this->store->attempts('payment', $order),
            default => [],
        };
    }

    private function paidBesides(Row $row): bool
    {
        return array_filter($this->besides($row->kind, $row->order), static fn (Row $a) => $a->paid()) !== [];
    }

    /** The newest attempt to be paid for an order, by a number or on a page. */
    private function latest(string|int $order): ?Row
    {
        [$row, $page] = [$this->store->newest('payment', (string) $order), $this->store->newest('checkout', (string) $order)];

        return $page !== null && ($row === null || $page->created_at > $row->created_at) ? $page : $row;
    }

    /**
     * Tells, once, that a checkout shows another amount than its wish. It is no end of it: the row is read until the service
     * shows what was wished for.
     */
    private function differs(mixed $tx, Change $c, Row $row, Subject $s, ?Cursor $cursor): Decision
    {
        if (in_array('other_amount', $s->seen, true)) {
            return new Decision(cursor: $cursor);
        }
        $settle = new Settlement($row->key, problem: Row::NEEDS_ATTENTION);
        if ($row->remote_id !== '') {
            [$settle->state, $settle->next_at] = [Row::TAKEN, $this->now()];
        }
        $c->kind = 'checkout.other_amount';
        ($this->onChange)($c, $tx);

        return new Decision(new Subject($s->id, $s->rank, [...$s->seen, 'other_amount'], max($s->sequence, $c->sequence)), $settle, $cursor);
    }

    /** Whether a row is a wish for what a checkout shows. */
    private static function wished(Row $row, Checkout|CheckoutSnapshot $checkout): bool
    {
        $wish = Json::parse($row->body)->amount;

        return $wish->value === $checkout->amount?->value && $wish->currency === $checkout->amount?->currency;
    }

    /** The last kind of news that a thing shows by itself. */
    private static function statusOf(Payment|Payout|Refund|Checkout|NewCheckout $one): string
    {
        if ($one instanceof Checkout || $one instanceof NewCheckout) {
            return $one->overpaid === true ? 'overpaid' : (string) $one->state;
        }

        return (string) $one->status;
    }

    /** @return array<string, string> what a row keeps of a checkout: its url, its return_secret, and the payment_id that paid it */
    private static function pageOf(string $details): array
    {
        $kept = $details === '' ? [] : (array) json_decode($details);

        return array_filter(array_intersect_key($kept, ['url' => 1, 'return_secret' => 1, 'payment_id' => 1]), static fn (mixed $v) => is_string($v) && $v !== '');
    }
}
