<?php

declare(strict_types=1);

namespace Till;

/** Wishes on their way to the service: the same bytes with the same key, until it is known what became of them. */
trait Outbox
{
    /** Writes an attempt, unless the order has one that stands in the way. */
    private function write(string $kind, string $order, int $until, callable $body): void
    {
        for ($n = 0; $n < 3; $n++) {
            foreach ($this->besides($kind, $order) as $row) {
                if ($row->paid()) {
                    throw new AlreadyPaid($order);
                }
                if ($row->open()) {
                    throw new AttemptOpen($row->order, $row->state, $row->send_until);
                }
            }
            $number = 1;
            foreach ($this->store->attempts($kind, $order) as $row) {
                $number = $row->attempt + 1;
                if ($row->open() && $kind === 'refund') { // another one of the same sum may well be meant
                    throw new AttemptOpen($row->order, $row->state, $row->send_until);
                }
                if ($row->paid() && $kind !== 'refund') {
                    throw new AlreadyPaid($order);
                }
                if ($row->open()) {
                    // The same wish while an attempt is open is that attempt.
                    if (!Json::same($body($row->key), $row->body)) {
                        throw new AttemptOpen($row->order, $row->state, $row->send_until);
                    }

                    return;
                }
            }
            $key = self::newKey();
            $now = $this->now();
            $fresh = new Row($key, $kind, $order, $number, $body($key), next_at: $now + self::FIRST_DUE, send_until: $now + $until, created_at: $now);
            if ($this->store->put($fresh)) {
                return;
            }
        }
        throw new OtherWrite('till: another program changed the attempt at the same moment');
    }

    /** Draws a UUID of version 4. */
    private static function newKey(): string
    {
        $b = random_bytes(16);
        $b[6] = chr(ord($b[6]) & 0x0f | 0x40);
        $b[8] = chr(ord($b[8]) & 0x3f | 0x80);

        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($b), 4));
    }

    /**
     * Posts the newest attempt of an order, and repeats it within the deadline of a call. What is not settled then is sent
     * again by run or sweep. It throws Refused, or an error of the store; a lost answer is no error. Call it after your
     * commit.
     */
    public function send(string|int $order): Progress
    {
        return $this->sendRow($this->newest('payment', $order), $this->client->tries);
    }

    /** Posts the newest payout of an order, like send. */
    public function sendPayOut(string|int $order): Progress
    {
        return $this->sendRow($this->newest('payout', $order), $this->client->tries);
    }

    /** Posts the newest refund of an order, like send. */
    public function sendRefund(string|int $order): Progress
    {
        return $this->sendRow($this->newest('refund', $order), $this->client->tries);
    }

    /**
     * Makes the page of the newest checkout of an order, like send. Send the customer to the url of the answer. Once it is
     * taken the same call answers from the store, with the same address and the same return secret.
     */
    public function sendCheckout(string|int $order): Progress
    {
        return $this->sendRow($this->newest('checkout', $order), $this->client->tries);
    }

    private function newest(string $kind, string|int $order): Row
    {
        return $this->store->newest($kind, (string) $order) ?? throw new NoAttempt('till: the order has no attempt');
    }

    /** Makes tries until the row is settled, or time or tries are over. */
    private function sendRow(Row $row, int $tries): Progress
    {
        $began = Client::now();
        $end = $began + $this->client->deadline;
        for ($n = 0;;) {
            if (!in_array($row->state, [Row::WRITTEN, Row::SENDING], true)) {
                return self::settled($row);
            }
            $now = $this->now();
            if ($now >= $row->send_until) {
                return $this->stale($row, $now);
            }
            $inFlight = $row->state === Row::SENDING && $now < $row->lease && $row->next_at === $row->lease + self::LEASE_GRACE;
            if ($n === 0 && $inFlight && Client::now() < $began + self::WAIT_FOR_OTHER) {
                ($this->client->sleep)(0.1);
                $row = $this->store->newest($row->kind, $row->order) ?? $row;
                continue;
            }
            $lease = max($now + (int) ($this->client->tryTimeout * 1000), $row->lease + 1);
            if (!$this->store->count($row, $lease, $lease + self::LEASE_GRACE)) {
                // Another one was faster; see what it did.
                if (Client::now() > $end) {
                    return new Progress('unclear');
                }
                $row = $this->store->newest($row->kind, $row->order) ?? $row;
                continue;
            }
            $n++;
            $before = $row->state === Row::SENDING;
            [$row->state, $row->lease, $row->tries] = [Row::SENDING, $lease, $row->tries + 1];
            [$progress, $wait] = $this->post($row, $before);
            if ($progress->state === 'taken' || $wait <= 0 || $n >= $tries || Client::now() + $wait > $end) {
                return $progress;
            }
            ($this->client->sleep)($wait);
        }
    }

    /** The progress of a row that is sent no more. */
    private static function settled(Row $row): Progress
    {
        return match ($row->state) {
            Row::TAKEN, Row::ENDED => new Progress('taken', $row->remote_id, url: self::pageOf($row->details)['url'] ?? '', return_secret: self::pageOf($row->details)['return_secret'] ?? ''),
            Row::LAPSED => new Progress('lapsed'),
            Row::LOST => new Progress('lost', $row->remote_id),
            default => throw new Refused($row->problem, ...self::keptOf($row->details), idempotency_key: $row->key, tries: $row->tries),
        };
    }

    /** @return array{Progress, float} one try, which was counted; the number is when to try again, 0 for not now */
    private function post(Row $row, bool $before): array
    {
        $op = match ($row->kind) {
            'payout' => Operations::CREATE_PAYOUT,
            'refund' => Operations::CREATE_REFUND,
            'checkout' => Operations::CREATE_CHECKOUT,
            default => Operations::CREATE_PAYMENT,
        };
        $c = new Call($op, body: $row->body, key: $row->key);
        try {
            $key = $this->client->key();
        } catch (\Throwable $e) {
            $this->back($row, $before);
            throw $e;
        }
        $got = $this->client->attempt($c, $key);
        if ($got->status === 401) {
            $again = $this->client->keyAgain();
            if ($again !== '' && $again !== $key) {
                $got = $this->client->attempt($c, $again);
            }
        }
        $verdict = $got->judge($c->op, $before);
        if ($verdict === 'done') {
            $progress = self::answered($got, $c, $row->kind);
            if ($progress !== null) {
                $this->client->succeeded();
                $this->take($row, $progress);

                return [$progress, 0.0];
            }
            $verdict = 'unclear';
        }
        if ($verdict === 'look') {
            try {
                $found = $this->find($row);
                if ($found !== null) {
                    $this->adopt($row, $found);

                    return [$found, 0.0];
                }
                // The try before of a payout or refund may have been taken, by a service that was restored since.
                $verdict = in_array($row->kind, ['payment', 'checkout'], true) ? 'refused' : 'unclear';
            } catch (CallError) {
                $verdict = 'unclear';
            }
        }

        return $this->missed($row, $got, $verdict, $before);
    }

    /** @return array{Progress, float} a row settled after a try that did not bring the payment */
    private function missed(Row $row, Tried $got, string $verdict, bool $before): array
    {
        $fail = $got->failure($verdict, $row->key, $row->tries);
        $s = new Settlement(from: [Row::SENDING], lease: $row->lease);
        if ($verdict === 'refused') {
            [$s->state, $s->problem, $s->details] = [Row::REFUSED, $got->code() ?: 'refused', self::detailsOf($fail)];
            $this->endOrBack($row, $s, $before);
            throw $fail;
        }
        $s->next_at = $this->now() + max(self::outboxDelay($row->tries), (int) ($got->retry_after * 1000));
        $wait = $got->passing() ? Call::delay(min($row->tries - 1, 5), $got->retry_after, ($this->client->random)()) : 0.0;
        $s->state = $verdict === 'unavailable' ? Row::WRITTEN : Row::SENDING; // unavailable: nothing arrived, now or before
        $this->settle($row, $s);

        return [new Progress($verdict === 'unavailable' ? 'later' : 'unclear', error: $fail), $wait];
    }

    /** Ends a row. If your function fails, it was not told, and the row is as before. */
    private function endOrBack(Row $row, Settlement $s, bool $before): bool
    {
        try {
            return $this->end($row, $s);
        } catch (\Throwable $e) {
            $this->back($row, $before);
            throw $e;
        }
    }

    /** Undoes a count of which nothing was sent, or an end that your function did not take. */
    private function back(Row $row, bool $before): void
    {
        $this->settle($row, new Settlement(from: [$row->state], lease: $row->lease, state: $before ? Row::SENDING : Row::WRITTEN, next_at: $this->now() + self::outboxDelay($row->tries)));
    }

    /** Changes a row in the store, and in memory if the store did. */
    private function settle(Row $row, Settlement $s): bool
    {
        $s->key = $row->key;
        $done = $this->store->settle($s);
        if ($done && $s->state !== null) {
            $row->state = $s->state;
        }

        return $done;
    }

    /** How many ms the outbox waits after a try: 1, 2, 4 … 60 s. */
    public static function outboxDelay(int $tries): int
    {
        return $tries > 6 ? 60_000 : min(60_000, 1000 << max($tries - 1, 0));
    }

    /** Reads the answer to a create; null if it is none. */
    private static function answered(Tried $got, Call $c, string $kind): ?Progress
    {
        try {
            $one = Payments::created(['payout' => Payout::class, 'refund' => Refund::class, 'checkout' => NewCheckout::class][$kind] ?? Payment::class, $got, $c);
        } catch (CallError) {
            return null;
        }

        $p = new Progress('taken', $one->id, $one, $got->header('Idempotent-Replayed') === 'true');
        if ($one instanceof NewCheckout) {
            [$p->url, $p->return_secret] = [(string) $one->url, (string) $one->return_secret];
        }

        return $p;
    }

    /** Notes that the service has it. News that came before the answer is not undone. */
    private function take(Row $row, Progress $p): void
    {
        $s = new Settlement(from: [Row::WRITTEN, Row::SENDING, Row::LAPSED, Row::REFUSED, Row::LOST], state: Row::TAKEN, remote_id: $p->id, send_until: self::expiry($p->subject));
        $s->next_at = $this->now() + $this->openAfter;
        if ($row->problem !== Row::ABANDONED) {
            $s->problem = $s->details = '';
        }
        if ($row->status === '' && self::rank(self::statusOf($p->subject)) < 3) {
            $s->status = self::statusOf($p->subject); // what ended is told by apply, with the call of the function
        }
        if ($row->kind !== 'checkout') {
            $this->settle($row, $s);

            return;
        }
        $page = ['url' => $p->url, 'return_secret' => $p->return_secret];
        $s->details = Json::render((object) $page);
        if (!$this->settle($row, $s)) {
            // News came before the answer. Its payment is kept, and the page's address with it.
            $now = $this->store->newest($row->kind, $row->order) ?? $row;
            $this->settle($row, new Settlement(from: [Row::TAKEN, Row::ENDED], details: Json::render((object) ($page + self::pageOf($now->details)))));
        }
    }

    /** The calls about what a row makes. */
    private function calls(Row $row): Payments|Payouts|Refunds|Checkouts
    {
        return match ($row->kind) {
            'payout' => $this->client->payouts,
            'refund' => $this->client->refunds,
            'checkout' => $this->client->checkouts,
            default => $this->client->payments,
        };
    }

    /** Asks the service for what a row made; null if there is nothing. A checkout is not looked for: nobody was given its address. */
    private function find(Row $row): ?Progress
    {
        if ($row->kind === 'checkout') {
            return null;
        }
        $one = $this->calls($row)->byKey($row->key);

        return $one === null ? null : new Progress('taken', (string) $one->id, $one, true);
    }

    /** Takes what was found, with the news that it brings. */
    private function adopt(Row $row, Progress $p): void
    {
        $this->take($row, $p);
        $this->applyRead($p->subject);
    }

    /**
     * Ends a wish whose time is over. What was never sent lapses. What may have arrived is asked for by its key, not sooner
     * than a request can be on its way; it is never posted again. If the service does not know it, a payment lapses, and so
     * does a checkout whose address was given to nobody. A payout or refund is lost: a service that was restored from a backup
     * forgot what it had paid out since, and one more would pay twice.
     */
    private function stale(Row $row, int $now): Progress
    {
        if ($row->state === Row::WRITTEN) {
            if (!$this->endOrBack($row, new Settlement(from: [Row::WRITTEN], state: Row::LAPSED, problem: Row::STALE), false)) {
                throw new OtherWrite('till: another program changed the attempt at the same moment');
            }

            return new Progress('lapsed');
        }
        $s = new Settlement(from: [Row::SENDING], lease: $row->lease);
        if ($now < $row->lease + $this->lookAfter) {
            $s->next_at = $row->lease + $this->lookAfter;
            $this->settle($row, $s);

            return new Progress('unclear');
        }
        try {
            $found = $this->find($row);
        } catch (CallError $e) {
            $s->next_at = $now + $this->lookAfter;
            $this->settle($row, $s);

            return new Progress('unclear', error: $e);
        }
        if ($found !== null) {
            $this->adopt($row, $found);

            return $found;
        }
        $end = $row->kind === 'payment' || $row->kind === 'checkout' && $row->remote_id === '' ? Row::LAPSED : Row::LOST;
        [$s->state, $s->problem] = [$end, Row::STALE];

        return new Progress($this->endOrBack($row, $s, true) ? $end : 'unclear'); // else news came meanwhile
    }

    /** Ends an attempt of which provably nothing arrived, for example to offer another method. */
    public function withdraw(string|int $order): void
    {
        $row = $this->latest($order) ?? $this->newest('payment', $order);
        if (!$this->settle($row, new Settlement(from: [Row::WRITTEN], state: Row::LAPSED, problem: Row::WITHDRAWN))) {
            throw new MayArrive('till: the attempt may have arrived, so it cannot be withdrawn');
        }
    }

    /**
     * Lets a new attempt begin beside one that is stuck. The old one is sent no more, but it may still bring money:
     * Change::$alreadyPaid tells it then.
     */
    public function abandon(string|int $order): void
    {
        $row = $this->latest($order);
        if ($row === null || !$row->open()) {
            throw new NotStuck('till: there is no open attempt to abandon');
        }
        $s = new Settlement(from: [Row::TAKEN, Row::LOST], problem: Row::ABANDONED);
        if (in_array($row->state, [Row::SENDING, Row::WRITTEN], true)) {
            $s = new Settlement(from: [Row::WRITTEN, Row::SENDING], problem: Row::ABANDONED, send_until: $this->now());
        }
        if (!$this->settle($row, $s)) {
            throw new OtherWrite('till: another program changed the attempt at the same moment');
        }
    }

    /**
     * Posts an attempt again that the service lost with a restored backup. The operator recognises it. M-Pesa does not:
     * look at its statement first.
     */
    public function resend(string|int $order): Progress
    {
        $row = $this->latest($order);
        $now = $this->now();
        $s = new Settlement(from: [Row::LOST], state: Row::SENDING, next_at: $now, send_until: $now + $this->paymentUntil);
        if ($row === null || $row->state !== Row::LOST || !$this->settle($row, $s)) {
            throw new NotLost('till: only an attempt that is lost is sent again by hand');
        }

        return $this->sendRow($this->newest($row->kind, $order), $this->client->tries);
    }
}
