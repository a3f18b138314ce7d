<?php

declare(strict_types=1);

namespace Till;

/** The calls about addresses that events are posted to. To receive them, see Teller::receive. */
final class WebhookEndpoints
{
    public function __construct(private readonly Client $c)
    {
    }

    /**
     * Registers an address. Its secret is in the answer, this once. A create without an answer is not repeated: list the
     * endpoints, and delete the one whose secret you have not seen.
     */
    public function create(CreateWebhookEndpoint $endpoint): NewWebhookEndpoint
    {
        return $this->c->read(NewWebhookEndpoint::class, new Call(Operations::CREATE_WEBHOOK_ENDPOINT, body: Json::render($endpoint->toJson())));
    }

    /** All endpoints. */
    public function list(): WebhookEndpointList
    {
        return $this->c->read(WebhookEndpointList::class, new Call(Operations::LIST_WEBHOOK_ENDPOINTS));
    }

    /** Reads an endpoint. */
    public function get(string $id): WebhookEndpoint
    {
        return $this->c->read(WebhookEndpoint::class, new Call(Operations::GET_WEBHOOK_ENDPOINT, [$id]));
    }

    /** Changes what is set. */
    public function update(string $id, UpdateWebhookEndpoint $endpoint): WebhookEndpoint
    {
        return $this->c->read(WebhookEndpoint::class, new Call(Operations::UPDATE_WEBHOOK_ENDPOINT, [$id], body: Json::render($endpoint->toJson())));
    }

    /** Removes an endpoint. */
    public function delete(string $id): void
    {
        $this->c->plain(new Call(Operations::DELETE_WEBHOOK_ENDPOINT, [$id]));
    }

    /** Gives an endpoint a new secret. */
    public function rotateSecret(string $id, RotateWebhookSecret $how): NewWebhookEndpoint
    {
        return $this->c->read(NewWebhookEndpoint::class, new Call(Operations::ROTATE_WEBHOOK_SECRET, [$id], body: Json::render($how->toJson())));
    }

    /** Posts a test event. */
    public function test(string $id): WebhookTest
    {
        return $this->c->read(WebhookTest::class, new Call(Operations::TEST_WEBHOOK_ENDPOINT, [$id]));
    }

    /** What became of each event, newest first. */
    public function deliveries(string $id, string $status = '', ?int $limit = null, ?int $before = null): DeliveryList
    {
        $q = Page::query(['status' => $status, 'limit' => $limit, 'before' => $before]);

        return $this->c->read(DeliveryList::class, new Call(Operations::LIST_DELIVERIES, [$id], $q));
    }

    /** Posts a stretch of the log again. */
    public function replay(string $id, Replay $stretch): Replayed
    {
        return $this->c->read(Replayed::class, new Call(Operations::REPLAY_EVENTS, [$id], body: Json::render($stretch->toJson())));
    }
}
