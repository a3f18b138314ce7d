<?php

declare(strict_types=1);

namespace Till;

/** The calls about refunds. */
final class Refunds
{
    public function __construct(private readonly Client $c)
    {
    }

    /** Gives a payment back, to the number that paid it. The key must be stored before. The answer is not final. */
    public function create(CreateRefund $refund): Refund
    {
        return Payments::post($this->c, Operations::CREATE_REFUND, $refund, Refund::class, $this->byKey(...));
    }

    /** Finds the refund that a key made; null if there is none. */
    public function byKey(string $key): ?Refund
    {
        return Payments::find($this->page(idempotency_key: $key)->items ?? [], $key);
    }

    /** Reads a refund. With wait it answers on a change of status, or after so many seconds, where the service can. */
    public function get(string $id, int $wait = 0): Refund
    {
        return Payments::waiting($this->c, Operations::GET_REFUND, Refund::class, $id, $wait);
    }

    /** Lists refunds, newest first, with their total. Both dates are inclusive. */
    public function page(
        string $status = '',
        string $method = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $reference = '',
        string $idempotency_key = '',
        string $provider_reference = '',
        string $payment_id = '',
        string $order = '',
        ?int $limit = null,
        ?int $offset = null,
    ): RefundPage {
        return $this->c->read(RefundPage::class, new Call(Operations::LIST_REFUNDS, query: Page::query(get_defined_vars())));
    }

    /**
     * Goes through all refunds that match, each once, whatever changes meanwhile. Order 'asc' is oldest first.
     *
     * @return \Generator<Refund>
     */
    public function all(
        string $status = '',
        string $method = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $reference = '',
        string $provider_reference = '',
        string $payment_id = '',
        string $order = '',
    ): \Generator {
        return Page::all(Page::query(get_defined_vars()), fn (array $q) => $this->c->read(RefundPage::class, new Call(Operations::LIST_REFUNDS, query: $q)));
    }

    /** Lists the calls to the operator. */
    public function attempts(string $id): AttemptList
    {
        return $this->c->read(AttemptList::class, new Call(Operations::LIST_REFUND_ATTEMPTS, [$id]));
    }

    /** Lists the events of a refund. */
    public function events(string $id): EventList
    {
        return $this->c->read(EventList::class, new Call(Operations::LIST_REFUND_EVENTS, [$id]));
    }

    /** Ends a refund of which nothing was sent. */
    public function cancel(string $id): Refund
    {
        return $this->c->read(Refund::class, new Call(Operations::CANCEL_REFUND, [$id]));
    }

    /** Lists the refunds of a payment, the newest first. */
    public function of(string $payment): RefundList
    {
        return $this->c->read(RefundList::class, new Call(Operations::LIST_PAYMENT_REFUNDS, [$payment]));
    }
}
