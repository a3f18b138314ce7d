<?php

declare(strict_types=1);

namespace Till;

/** The calls about orders that are paid on a page of the service. */
final class Checkouts
{
    public function __construct(private readonly Client $c)
    {
    }

    /**
     * Makes a page on which a customer pays one order. Send the customer to the url of the answer, and keep its return_secret
     * with the order. The key must be stored before. No money is asked by it: after Unclear make the same call with the same
     * key again, which answers what the first one made.
     */
    public function create(CreateCheckout $checkout): NewCheckout
    {
        return Payments::post($this->c, Operations::CREATE_CHECKOUT, $checkout, NewCheckout::class, null);
    }

    /** Reads a checkout. With wait it answers on a change of state, or after so many seconds, where the service can. */
    public function get(string $id, int $wait = 0): Checkout
    {
        return Payments::waiting($this->c, Operations::GET_CHECKOUT, Checkout::class, $id, $wait);
    }

    /** Lists checkouts, newest first, with their total. Both dates are inclusive. */
    public function page(
        string $state = '',
        string $reference = '',
        string $link_id = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $order = '',
        ?int $limit = null,
        ?int $offset = null,
    ): CheckoutPage {
        return $this->c->read(CheckoutPage::class, new Call(Operations::LIST_CHECKOUTS, query: Page::query(get_defined_vars())));
    }

    /**
     * Goes through all checkouts that match, each once, whatever changes meanwhile. Order 'asc' is oldest first.
     *
     * @return \Generator<Checkout>
     */
    public function all(
        string $state = '',
        string $reference = '',
        string $link_id = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $order = '',
    ): \Generator {
        return Page::all(Page::query(get_defined_vars()), fn (array $q) => $this->c->read(CheckoutPage::class, new Call(Operations::LIST_CHECKOUTS, query: $q)));
    }

    /** Ends a checkout of which no ask may still bring money. */
    public function cancel(string $id): Checkout
    {
        return $this->c->read(Checkout::class, new Call(Operations::CANCEL_CHECKOUT, [$id]));
    }
}
