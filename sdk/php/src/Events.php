<?php

declare(strict_types=1);

namespace Till;

/** The calls about the event log. */
final class Events
{
    public function __construct(private readonly Client $c)
    {
    }

    /** The events after a sequence, oldest first. It waits for one if there is none, at most 60 s. */
    public function read(int $after = 0, ?int $limit = null, int $wait = 0): EventPage
    {
        $q = Page::query(['after' => $after, 'limit' => $limit, 'wait' => $wait ?: null]);

        return $this->c->read(EventPage::class, new Call(Operations::LIST_EVENTS, query: $q, wait: $wait));
    }

    /** Reads an event. */
    public function get(string $id): Event
    {
        return $this->c->read(Event::class, new Call(Operations::GET_EVENT, [$id]));
    }

    /** Posts an event again, to one endpoint or to all. */
    public function redeliver(string $id, Redeliver $to): Redelivered
    {
        return $this->c->read(Redelivered::class, new Call(Operations::REDELIVER_EVENT, [$id], body: Json::render($to->toJson())));
    }
}
