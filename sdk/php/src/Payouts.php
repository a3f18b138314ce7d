<?php

declare(strict_types=1);

namespace Till;

/** The calls about payouts. */
final class Payouts
{
    public function __construct(private readonly Client $c)
    {
    }

    /** Sends money to a recipient. The key must be stored before: Teller does that. The answer is not final. */
    public function create(CreatePayout $payout): Payout
    {
        return Payments::post($this->c, Operations::CREATE_PAYOUT, $payout, Payout::class, $this->byKey(...));
    }

    /** Finds the payout that a key made; null if there is none. */
    public function byKey(string $key): ?Payout
    {
        return Payments::find($this->page(idempotency_key: $key)->items ?? [], $key);
    }

    /** Reads a payout. With wait it answers on a change of status, or after so many seconds, where the service can. */
    public function get(string $id, int $wait = 0): Payout
    {
        return Payments::waiting($this->c, Operations::GET_PAYOUT, Payout::class, $id, $wait);
    }

    /** Lists payouts, newest first, with their total. Both dates are inclusive. */
    public function page(
        string $status = '',
        string $method = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $reference = '',
        string $idempotency_key = '',
        string $provider_reference = '',
        string $order = '',
        ?int $limit = null,
        ?int $offset = null,
    ): PayoutPage {
        return $this->c->read(PayoutPage::class, new Call(Operations::LIST_PAYOUTS, query: Page::query(get_defined_vars())));
    }

    /**
     * Goes through all payouts that match, each once, whatever changes meanwhile. Order 'asc' is oldest first.
     *
     * @return \Generator<Payout>
     */
    public function all(
        string $status = '',
        string $method = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $reference = '',
        string $provider_reference = '',
        string $order = '',
    ): \Generator {
        return Page::all(Page::query(get_defined_vars()), fn (array $q) => $this->c->read(PayoutPage::class, new Call(Operations::LIST_PAYOUTS, query: $q)));
    }

    /** Lists the calls to the operator. */
    public function attempts(string $id): AttemptList
    {
        return $this->c->read(AttemptList::class, new Call(Operations::LIST_PAYOUT_ATTEMPTS, [$id]));
    }

    /** Lists the events of a payout. */
    public function events(string $id): EventList
    {
        return $this->c->read(EventList::class, new Call(Operations::LIST_PAYOUT_EVENTS, [$id]));
    }

    /** Ends a payout of which nothing was sent. */
    public function cancel(string $id): Payout
    {
        return $this->c->read(Payout::class, new Call(Operations::CANCEL_PAYOUT, [$id]));
    }
}
