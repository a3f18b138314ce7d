<?php

declare(strict_types=1);

namespace Till;

/** The calls about payments, and what payouts share with them. */
final class Payments
{
    public function __construct(private readonly Client $c)
    {
    }

    /** Asks a customer for money. The key must be stored before: Teller does that. The answer is not final. */
    public function create(CreatePayment $payment): Payment
    {
        return self::post($this->c, Operations::CREATE_PAYMENT, $payment, Payment::class, $this->byKey(...));
    }

    /** Finds the payment that a key made; null if there is none. */
    public function byKey(string $key): ?Payment
    {
        return self::find($this->page(idempotency_key: $key)->items ?? [], $key);
    }

    /** Reads a payment. With wait it answers on a change of status, or after so many seconds, where the service can. */
    public function get(string $id, int $wait = 0): Payment
    {
        return self::waiting($this->c, Operations::GET_PAYMENT, Payment::class, $id, $wait);
    }

    /** Lists payments, newest first, with their total. Both dates are inclusive. */
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
    ): PaymentPage {
        return $this->c->read(PaymentPage::class, new Call(Operations::LIST_PAYMENTS, query: Page::query(get_defined_vars())));
    }

    /**
     * Goes through all payments that match, each once, whatever changes meanwhile. Order 'asc' is oldest first.
     *
     * @return \Generator<Payment>
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
        return Page::all(Page::query(get_defined_vars()), fn (array $q) => $this->c->read(PaymentPage::class, new Call(Operations::LIST_PAYMENTS, query: $q)));
    }

    /** Lists the calls to the operator. */
    public function attempts(string $id): AttemptList
    {
        return $this->c->read(AttemptList::class, new Call(Operations::LIST_PAYMENT_ATTEMPTS, [$id]));
    }

    /** Lists the events of a payment. */
    public function events(string $id): EventList
    {
        return $this->c->read(EventList::class, new Call(Operations::LIST_PAYMENT_EVENTS, [$id]));
    }

    /** Finds in a page what a key made. */
    public static function find(array $items, string $key): mixed
    {
        foreach ($items as $one) {
            if (strtolower((string) $one->idempotency_key) === strtolower($key)) {
                return $one;
            }
        }

        return null;
    }

    /** Posts a body with a key. If a try without an answer leaves open what happened, finds by the key what it made, where something can. */
    public static function post(Client $client, array $op, CreatePayment|CreatePayout|CreateRefund|CreateCheckout|CreateLink $body, string $class, ?callable $byKey): mixed
    {
        if ($body->idempotency_key === '') {
            throw new NoIdempotencyKey('till: a create needs an idempotency key that you have stored; see Teller');
        }
        $c = new Call($op, body: Json::render($body->toJson()), key: $body->idempotency_key);
        try {
            $t = $client->call($c);
        } catch (LookFirst $look) {
            if ($byKey === null) {
                throw $look->unknown;
            }
            try {
                $found = $byKey($c->key);
            } catch (CallError) {
                throw $look->unknown;
            }

            return $found ?? throw $look->absent;
        }

        return self::created($class, $t, $c);
    }

    /** Reads the answer to a create. JSON of something else, as a portal sends it, is no answer. */
    public static function created(string $class, Tried $t, Call $c): mixed
    {
        $one = Client::decode($class, $t, $c);
        if ((string) $one->id === '' || strtolower((string) $one->idempotency_key) !== strtolower($c->key)) {
            $t->reason = 'not_json';
            throw $t->failure('unclear', $c->key, 1);
        }

        return $one;
    }

    /** Reads one thing. A service that does not know the parameter wait says so once, and is not asked again. */
    public static function waiting(Client $client, array $op, string $class, string $id, int $wait): mixed
    {
        if ($wait >= 1 && $client->longPoll) {
            try {
                return $client->read($class, new Call($op, [$id], ['wait' => (string) $wait], wait: $wait));
            } catch (Refused $e) {
                if ($e->code !== ErrorCode::INVALID_PARAMETER) {
                    throw $e;
                }
                $client->longPoll = false;
            }
        }

        return $client->read($class, new Call($op, [$id]));
    }
}
