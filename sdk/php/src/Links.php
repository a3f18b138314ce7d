<?php

declare(strict_types=1);

namespace Till;

/** The calls about addresses that anybody can pay on. */
final class Links
{
    public function __construct(private readonly Client $c)
    {
    }

    /**
     * Makes an address that anybody can pay on: each customer gets a checkout of their own. The key must be stored before. No
     * money is asked by it: after Unclear make the same call with the same key again, which answers what the first one made.
     */
    public function create(CreateLink $link): Link
    {
        return Payments::post($this->c, Operations::CREATE_LINK, $link, Link::class, null);
    }

    /** Reads a link. What came in by it is the list of its checkouts. */
    public function get(string $id): Link
    {
        return $this->c->read(Link::class, new Call(Operations::GET_LINK, [$id]));
    }

    /** Changes what is set: its title and its end, and whether it is switched on. What is paid for never changes. */
    public function update(string $id, UpdateLink $link): Link
    {
        return $this->c->read(Link::class, new Call(Operations::UPDATE_LINK, [$id], body: Json::render($link->toJson())));
    }

    /** Lists links, newest first, with their total. Both dates are inclusive; active is 'true' or 'false'. */
    public function page(
        string $active = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $order = '',
        ?int $limit = null,
        ?int $offset = null,
    ): LinkPage {
        return $this->c->read(LinkPage::class, new Call(Operations::LIST_LINKS, query: Page::query(get_defined_vars())));
    }

    /**
     * Goes through all links that match, each once, whatever changes meanwhile. Order 'asc' is oldest first.
     *
     * @return \Generator<Link>
     */
    public function all(
        string $active = '',
        \DateTimeInterface|string|null $from_date = null,
        \DateTimeInterface|string|null $to_date = null,
        string $order = '',
    ): \Generator {
        return Page::all(Page::query(get_defined_vars()), fn (array $q) => $this->c->read(LinkPage::class, new Call(Operations::LIST_LINKS, query: $q)));
    }
}
