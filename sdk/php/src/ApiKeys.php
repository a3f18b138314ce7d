<?php

declare(strict_types=1);

namespace Till;

/** The calls about keys. */
final class ApiKeys
{
    public function __construct(private readonly Client $c)
    {
    }

    /** Your keys. */
    public function list(): ApiKeyList
    {
        return $this->c->read(ApiKeyList::class, new Call(Operations::LIST_API_KEYS));
    }

    /**
     * Makes a key, which is in the answer this once. It is never repeated: without an answer, list the keys and revoke the one
     * that you have not seen.
     */
    public function create(CreateApiKey $key): NewApiKey
    {
        return $this->c->read(NewApiKey::class, new Call(Operations::CREATE_API_KEY, body: Json::render($key->toJson())));
    }

    /** Makes the successor of a key. It is never repeated, like create. */
    public function rotate(string $id, RotateApiKey $how): NewApiKey
    {
        return $this->c->read(NewApiKey::class, new Call(Operations::ROTATE_API_KEY, [$id], body: Json::render($how->toJson())));
    }

    /** Ends a key and those that it made. */
    public function revoke(string $id): void
    {
        $this->c->plain(new Call(Operations::REVOKE_API_KEY, [$id]));
    }

    /** Ends a key that leaked, with all that descends from it. Null if the key was gone already. */
    public function revokeAll(string $id): ?RevokedApiKey
    {
        $c = new Call(Operations::REVOKE_API_KEY, [$id], ['cascade' => 'true']);
        $t = $this->c->plain($c);

        return $t->status === 200 ? Client::decode(RevokedApiKey::class, $t, $c) : null;
    }
}
