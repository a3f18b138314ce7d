<?php

declare(strict_types=1);

namespace Till;

/** What is due, what the log tells, what is open for long. */
trait Sweep
{
    /**
     * Does all that is due, once: sends, reads the event log to its end, reads what is open for long, and lists what needs a
     * person. Call it from cron, every minute. One failure does not stop the rest; SweepFailed joins all, with the report.
     */
    public function sweep(): Report
    {
        $r = new Report();
        $errors = [];
        foreach ([$this->sendDue(...), $this->readLog(...), $this->readOpen(...), $this->listAttention(...)] as $part) {
            try {
                $part($r);
            } catch (SweepFailed $e) {
                array_push($errors, ...$e->errors);
            } catch (\Throwable $e) {
                $errors[] = $e;
            }
        }
        if ($errors) {
            throw new SweepFailed($r, $errors);
        }

        return $r;
    }

    /**
     * Does the same all the time, until the function says no: one part after the other, with a short long poll of the log
     * between looks at the outbox. For a process of its own.
     *
     * @param callable(): bool $on
     * @param ?callable(Report, ?\Throwable): void $onReport
     */
    public function run(callable $on, ?callable $onReport = null): void
    {
        $failures = 0;
        $opened = 0.0;
        while ($on()) {
            $parts = [$this->sendDue(...), fn (Report $r) => $this->readLog($r, 1)];
            if (Client::now() - $opened > 15) {
                $opened = Client::now();
                $parts[] = $this->readOpen(...);
            }
            $r = new Report();
            $error = null;
            foreach ($parts as $part) {
                try {
                    $part($r);
                } catch (\Throwable $e) {
                    $error = $e;
                }
            }
            $failures = $error === null ? 0 : $failures + 1;
            if ($onReport !== null) {
                $onReport($r, $error);
            }
            ($this->client->sleep)($failures > 0 ? min(60.0, (float) $failures) : 0.01);
        }
    }

    /** Keeps calls of a sweep apart: at most 20 a second. */
    private function pace(): void
    {
        $now = Client::now();
        $at = max($this->nextCall, $now);
        $this->nextCall = $at + 0.05;
        if ($at > $now) {
            ($this->client->sleep)($at - $now);
        }
    }

    /** Sends what is due, one after the other. */
    private function sendDue(Report $r): void
    {
        $errors = [];
        foreach ($this->store->due($this->now(), self::MAX_DUE) as $row) {
            $this->pace();
            try {
                $this->sendRow($row, 1)->state === 'taken' ? $r->sent++ : $r->waiting++;
            } catch (Refused) {
                // It is on the attention list.
            } catch (\Throwable $e) {
                $errors[] = $e;
            }
        }
        if ($errors) {
            throw new SweepFailed($r, $errors);
        }
    }

    /**
     * Reads the event log from the cursor to its end. An event whose function fails holds the cursor back, and nothing else:
     * those after it are applied, and are old news when they are read again.
     */
    private function readLog(Report $r, int $wait = 0): void
    {
        $cursor = $this->store->cursor($this->cursorName);
        if ($cursor->log === '' && !$this->fromStart) {
            $cursor = $this->beginAtEnd($r);
        }
        [$after, $reset, $failed, $foreign] = [$cursor->after, false, [], $this->foreign];
        while (true) {
            $this->pace();
            $page = null;
            try {
                $page = $this->client->events->read($after, self::LOG_PAGE, $wait);
            } catch (Refused $e) {
                if ($e->code !== ErrorCode::CURSOR_AHEAD) {
                    throw $e;
                }
            }
            if ($page === null || $cursor->log !== '' && $page->log_id !== $cursor->log) {
                if ($reset) {
                    throw new TillError('till: the event log changes while it is read');
                }
                $this->reread($this->now() - self::LOOK_BACK, $r);
                [$cursor->log, $cursor->after, $after, $reset] = ['', 0, 0, true];
                $foreign = $foreign && $this->fromStart; // what of them is history cannot be told
                continue;
            }
            $cursor->log = (string) $page->log_id;
            foreach ($page->items ?? [] as $e) {
                try {
                    $this->applyEvent($e, $failed || $reset ? null : new Cursor($cursor->name, $cursor->log, (int) $e->sequence), $foreign);
                } catch (\Throwable $error) {
                    $failed[] = $error;
                    continue;
                }
                $r->applied++;
            }
            $end = $page->next_after === $after || !$page->items;
            $after = (int) $page->next_after;
            if (!$failed) {
                $cursor->after = $after;
                $this->store->moveCursor($cursor, $reset);
                $reset = false;
            }
            if ($end || $wait > 0 && !$failed) {
                break;
            }
            $wait = 0;
        }
        if ($failed) {
            throw new SweepFailed($r, $failed);
        }
    }

    /** Sets the cursor of a new store to the end of the log. What its own attempts came to before that is read from them. */
    private function beginAtEnd(Report $r): Cursor
    {
        $cursor = $this->logEnd();
        $this->reread(0, $r);
        $this->store->moveCursor($cursor, false);

        return $cursor;
    }

    /** Finds the end of the log: the service takes no sequence beyond it, so a few calls find it, however long it is. */
    private function logEnd(): Cursor
    {
        $end = new Cursor($this->cursorName);
        [$at, $beyond] = [0, 0];
        while (true) {
            $this->pace();
            try {
                $log = (string) $this->client->events->read($at, 1)->log_id;
                if ($end->log !== '' && $log !== $end->log) {
                    throw new TillError('till: the event log changes while it is read');
                }
                [$end->log, $end->after] = [$log, $at];
            } catch (Refused $e) {
                if ($e->code !== ErrorCode::CURSOR_AHEAD || $at === 0) {
                    throw $e;
                }
                $beyond = $at;
            }
            if ($beyond > 0 && $beyond - $end->after <= 1) {
                return $end;
            }
            $at = $beyond > 0 ? $end->after + intdiv($beyond - $end->after, 2) : max(16, 4 * $at);
        }
    }

    /** Reads every attempt since a time: the service was restored from a backup, and its log is another one; or this store begins. */
    private function reread(int $from, Report $r): void
    {
        $after = '';
        do {
            $rows = $this->store->since($from, $after, self::MAX_OPEN);
            foreach ($rows as $row) {
                $after = $row->key;
                if ($row->remote_id !== '') { // else it was not taken: the outbox sends it, or it is over
                    $this->readRow($row, $r);
                }
            }
        } while (count($rows) === self::MAX_OPEN);
    }

    /** Reads attempts that are taken, not ended, and left alone for long. */
    private function readOpen(Report $r): void
    {
        $errors = [];
        foreach ($this->store->open($this->now(), self::MAX_OPEN) as $row) {
            try {
                $this->readRow($row, $r);
            } catch (\Throwable $e) {
                $errors[] = $e;
                if (count($errors) > 3) {
                    break;
                }
            }
        }
        if ($errors) {
            throw new SweepFailed($r, $errors);
        }
    }

    private function listAttention(Report $r): void
    {
        foreach ($this->store->attention($this->now() - self::LOOK_BACK, self::MAX_ATTENTION) as $row) {
            $r->attention[] = new Attention($row->kind, $row->order, $row->key, $row->state, $row->problem);
        }
    }

    private function readRow(Row $row, Report $r): void
    {
        $this->pace();
        $this->readAndApply($row, 0);
        $r->read++;
    }

    /**
     * Reads what a row made, and applies what it shows. What the service does not know any more is lost: that is reported,
     * never posted by itself. A checkout is made again by its key as long as it can be paid: its page asks by the same keys as
     * the lost one, so nobody is debited twice.
     */
    private function readAndApply(Row $row, int $wait): Payment|Payout|Refund|Checkout|null
    {
        try {
            $one = $this->calls($row)->get($row->remote_id, $wait);
        } catch (Refused $e) {
            if ($e->code !== $row->kind . '_not_found') {
                throw $e;
            }
            $now = $this->now();
            if ($row->kind === 'checkout' && $row->state === Row::TAKEN && $now < $row->send_until) {
                $this->settle($row, new Settlement(from: [Row::TAKEN], state: Row::SENDING, next_at: $now));

                return null;
            }
            $this->end($row, new Settlement(from: [Row::TAKEN, Row::ENDED], state: Row::LOST, problem: $e->code, details: self::detailsOf($e)));

            return null;
        }
        $this->applyRead($one);
        $s = new Settlement(from: [Row::TAKEN], next_at: $this->now() + $this->openAfter);
        if (!$one instanceof Checkout && $one->resolution?->state === Row::NEEDS_ATTENTION && $row->problem !== Row::ABANDONED) {
            $s->problem = Row::NEEDS_ATTENTION;
        }
        $this->settle($row, $s);

        return $one;
    }

    /**
     * Sends what is not sent, and reads the payment until its status is final; StillOpen if that takes longer. Your function has
     * been called when it returns.
     */
    public function wait(string|int $order, float $seconds = 90.0): Payment
    {
        return $this->waitFor('payment', $order, $seconds);
    }

    /** Wait for a payout. */
    public function waitPayOut(string|int $order, float $seconds = 90.0): Payout
    {
        return $this->waitFor('payout', $order, $seconds);
    }

    /** Wait for the newest refund of an order. */
    public function waitRefund(string|int $order, float $seconds = 90.0): Refund
    {
        return $this->waitFor('refund', $order, $seconds);
    }

    /** Wait for the newest checkout of an order, until it is paid, expired or cancelled. */
    public function waitCheckout(string|int $order, float $seconds = 90.0): Checkout
    {
        return $this->waitFor('checkout', $order, $seconds);
    }

    private function waitFor(string $kind, string|int $order, float $seconds): Payment|Payout|Refund|Checkout
    {
        $end = Client::now() + $seconds;
        $polls = [1.0, 1.0, 2.0, 3.0, 5.0]; // where the service has no long poll
        for ($n = 0;; $n++) {
            $row = $this->newest($kind, $order);
            if (in_array($row->state, [Row::WRITTEN, Row::SENDING], true)) {
                if ($this->now() >= $row->next_at || $row->tries === 0) {
                    $this->sendRow($row, 1);
                }
            } elseif (in_array($row->state, [Row::TAKEN, Row::ENDED], true)) {
                try {
                    $one = $this->readAndApply($row, (int) max(0, min($end - Client::now(), 30)));
                } catch (Unavailable) {
                    $one = null;
                }
                if ($one !== null && self::rank(self::statusOf($one)) >= 3) {
                    return $one;
                }
            } else {
                self::settled($row); // throws what was refused
                throw new StillOpen('till: the outcome is not known yet');
            }
            $pause = $polls[min($n, 4)];
            if (Client::now() + $pause > $end) {
                throw new StillOpen('till: the outcome is not known yet');
            }
            ($this->client->sleep)($pause);
        }
    }
}
