<?php

declare(strict_types=1);

namespace Till;

/** Where all news ends: one function of yours, called once for each change. */
trait Inbox
{
    /** The time in ms, as exact as stores keep it. */
    private function now(): int
    {
        return (int) (($this->clock)() * 1000);
    }

    /** Orders the news of one payment or payout; 0 is no news of an attempt, from 3 on the attempt has ended. */
    private static function rank(?string $status): int
    {
        return ['pending' => 1, 'processing' => 2, 'success' => 3, 'failed' => 3, 'expired' => 3, 'cancelled' => 3, 'late_success' => 4, 'reversed' => 5][$status ?? ''] ?? 0;
    }

    /** The road of webhooks and the log. */
    private function applyEvent(Event $e, ?Cursor $cursor = null): void
    {
        [$noun, $status] = explode('.', (string) $e->type . '.', 3);
        $subject = match ($noun) {
            'payment' => $e->data?->payment,
            'payout' => $e->data?->payout,
            default => null,
        };
        if (self::rank($status) > 0 && $subject !== null) {
            $this->applyChange(new Change((string) $e->type, event_id: (string) $e->id, sequence: (int) $e->sequence), $subject, $noun, $status, $cursor);

            return;
        }
        if ($this->onOther === null) {
            return;
        }
        $this->store->apply((string) $e->id, '', '', function (mixed $tx, Subject $s) use ($e, $cursor): Decision {
            if (in_array($e->type, $s->seen, true)) {
                return new Decision(cursor: $cursor);
            }
            ($this->onOther)($e, $tx);

            return new Decision(new Subject($s->id, $s->rank, [...$s->seen, (string) $e->type], (int) $e->sequence), cursor: $cursor);
        });
    }

    /** The road of the sweep: the news is what the payment shows. A status that is not known is not final, and no news. */
    private function applyRead(Payment|Payout $one): void
    {
        $status = match (true) {
            $one instanceof Payment && $one->reversed_at !== null => 'reversed',
            $one->late_success_at !== null => 'late_success',
            default => (string) $one->status,
        };
        if (self::rank($status) > 0) {
            $noun = $one instanceof Payment ? 'payment' : 'payout';
            $this->applyChange(new Change("$noun.$status"), $one, $noun, $status, null);
        }
    }

    /**
     * Where all roads end. In one transaction: lock what is known; stop if this news was seen, or is older than what is known;
     * call the function; save.
     */
    private function applyChange(Change $change, Payment|Payout $one, string $noun, string $status, ?Cursor $cursor): void
    {
        $change->payment = $one instanceof Payment ? $one : null;
        $change->payout = $one instanceof Payout ? $one : null;
        $change->key = strtolower((string) $one->idempotency_key);
        $change->reference = (string) $one->reference;
        $change->late = $status === 'late_success';
        $this->store->apply((string) $one->id, $noun, $change->key, function (mixed $tx, Subject $s, array $attempts) use ($change, $one, $status, $cursor): Decision {
            if (in_array($status, $s->seen, true)) {
                return new Decision(cursor: $cursor);
            }
            $c = clone $change;
            $row = null;
            foreach ($attempts as $a) {
                if ($a->key === $c->key) {
                    [$row, $c->order, $c->attempt] = [$a, $a->order, $a->attempt];
                } elseif ($a->paid()) {
                    $c->alreadyPaid = true;
                }
            }
            $s = new Subject($s->id, $s->rank, [...$s->seen, $status], max($s->sequence, $c->sequence));
            $d = new Decision($s, cursor: $cursor);
            $rank = self::rank($status);
            if ($rank <= $s->rank) {
                return $d;
            }
            // The attempt may have ended under another id: a restored service made it
            // again. What it brought before is no news, but money after none is.
            $again = $row !== null && $s->rank < 3 && self::rank($row->status) >= 3;
            $s->rank = $rank;
            if ($again && !($row->unpaid() && in_array($status, ['success', 'late_success'], true))) {
                $d->settle = $this->news($row, $one, $row->status);

                return $d;
            }
            if ($row !== null) {
                $d->settle = $this->news($row, $one, $status);
            }
            if ($rank >= 3) {
                ($this->onChange)($c, $tx);
            } elseif ($this->onProgress !== null) {
                ($this->onProgress)($c, $tx);
            }

            return $d;
        });
    }

    /** What a change does to its row. */
    private function news(Row $row, Payment|Payout $one, string $status): Settlement
    {
        return new Settlement(
            $row->key,
            remote_id: (string) $one->id,
            status: $status,
            state: self::rank($status) >= 3 ? Row::ENDED : Row::TAKEN,
            send_until: self::expiry($one),
            next_at: $this->now() + $this->openAfter,
            problem: $row->problem !== Row::ABANDONED ? '' : null,
        );
    }

    /** When the customer's time ends; 0 if nobody said it. */
    private static function expiry(Payment|Payout $one): int
    {
        $at = $one->expires_at === null ? false : date_create_immutable($one->expires_at);

        return $at === false ? 0 : (int) $at->format('Uv');
    }
}
