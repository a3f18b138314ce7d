<?php

declare(strict_types=1);

namespace Till\Store;

use PDO;
use Till\Cursor;
use Till\Decision;
use Till\InsideTransaction;
use Till\Mistake;
use Till\Row;
use Till\Settlement;
use Till\Store;
use Till\Subject;
use Till\TillError;

/**
 * The store in your database, on your connection: SQLite, PostgreSQL, MySQL or MariaDB. Collect writes in the transaction that
 * you have begun. Your function is given the connection, inside a transaction of the store.
 *
 * What has to be committed by itself, as the count of a try before its first byte, refuses to run inside a transaction of
 * yours: send after your commit.
 */
class PdoStore implements Store
{
    private const COLUMNS = 'idempotency_key, kind, order_id, attempt, body, state, tries, next_at, lease, send_until, remote_id, status, problem, created_at, details';
    private const MAX_CONFLICTS = 10; // how often a transaction is tried again that another one undid
    private const UPSERT = ' ON CONFLICT (name) DO UPDATE SET log_id = excluded.log_id, after_sequence = excluded.after_sequence';

    private bool $began = false;

    public function __construct(private readonly ?PDO $pdo)
    {
    }

    protected function pdo(): PDO
    {
        return $this->pdo ?? throw new Mistake('till: there is no connection');
    }

    /** What your function is given. */
    protected function handle(): mixed
    {
        return $this->pdo();
    }

    private function driver(): string
    {
        $name = $this->pdo()->getAttribute(PDO::ATTR_DRIVER_NAME);

        return in_array($name, ['sqlite', 'pgsql', 'mysql'], true) ? $name : throw new Mistake('till: the store is for SQLite, PostgreSQL and MySQL');
    }

    /** After a SELECT: nobody else changes these rows. */
    private function lock(): string
    {
        return $this->driver() === 'sqlite' ? '' : ' FOR UPDATE';
    }

    /** After an INSERT: leave what is there. */
    private function ignore(string $column): string
    {
        return $this->driver() === 'mysql' ? " ON DUPLICATE KEY UPDATE $column = $column" : ' ON CONFLICT DO NOTHING';
    }

    private function rank(): string
    {
        return $this->driver() === 'mysql' ? '`rank`' : 'rank';
    }

    /** Whether a transaction of yours is open. */
    protected function inside(): bool
    {
        return $this->pdo()->inTransaction();
    }

    protected function begin(): void
    {
        if ($this->driver() === 'sqlite') {
            // At once for writing: a read that becomes a write may find that it is too late.
            $this->pdo()->exec('BEGIN IMMEDIATE');
        } else {
            $this->pdo()->beginTransaction();
        }
    }

    protected function commit(): void
    {
        $this->driver() === 'sqlite' ? $this->pdo()->exec('COMMIT') : $this->pdo()->commit();
    }

    protected function rollBack(): void
    {
        $this->driver() === 'sqlite' ? $this->pdo()->exec('ROLLBACK') : $this->pdo()->rollBack();
    }

    public function install(): void
    {
        $name = ['sqlite' => 'sqlite', 'pgsql' => 'postgres', 'mysql' => 'mysql'][$this->driver()];
        foreach (explode(";\n", (string) file_get_contents(__DIR__ . "/../schema/$name.sql")) as $statement) {
            if (trim($statement) !== '') {
                $this->pdo()->exec($statement);
            }
        }
        $this->upgrade();
    }

    /** Adds the column that tables of the first release lack. Two programs may do it at once: the one that comes late finds it there. */
    private function upgrade(): void
    {
        if ($this->driver() === 'pgsql') {
            $this->pdo()->exec('ALTER TABLE till_outbox ADD COLUMN IF NOT EXISTS details TEXT');
        } elseif (!$this->hasDetails()) {
            try {
                $this->pdo()->exec('ALTER TABLE till_outbox ADD COLUMN details ' . ($this->driver() === 'mysql' ? 'MEDIUMTEXT CHARACTER SET utf8mb4' : 'TEXT'));
            } catch (\PDOException $e) {
                if (!$this->hasDetails()) {
                    throw $e;
                }
            }
        }
    }

    private function hasDetails(): bool
    {
        try {
            $this->pdo()->query('SELECT details FROM till_outbox WHERE 1 = 0')->fetchAll();

            return true;
        } catch (\PDOException) {
            return false;
        }
    }

    private function run(string $statement, mixed ...$args): \PDOStatement
    {
        $prepared = $this->pdo()->prepare($statement);
        foreach ($args as $i => $value) {
            $prepared->bindValue($i + 1, $value, is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR);
        }
        $prepared->execute();

        return $prepared;
    }

    /** @return Row[] */
    private function rows(string $rest, mixed ...$args): array
    {
        $out = [];
        foreach ($this->run('SELECT ' . self::COLUMNS . ' FROM till_outbox WHERE ' . $rest, ...$args)->fetchAll(PDO::FETCH_NUM) as $r) {
            $body = is_resource($r[4]) ? (string) stream_get_contents($r[4]) : (string) $r[4];
            $out[] = new Row($r[0], $r[1], $r[2], (int) $r[3], $body, $r[5], (int) $r[6], (int) $r[7], (int) $r[8], (int) $r[9], (string) $r[10], $r[11], $r[12], (int) $r[13], (string) $r[14]);
        }

        return $out;
    }

    public function attempts(string $kind, string $order): array
    {
        return $this->rows('kind = ? AND order_id = ? ORDER BY attempt', $kind, $order);
    }

    public function put(Row $row): bool
    {
        $insert = $this->pdo()->prepare('INSERT INTO till_outbox (' . self::COLUMNS . ') VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?)' . $this->ignore('attempt'));
        $values = [$row->key, $row->kind, $row->order, $row->attempt, $row->body, $row->state, $row->tries, $row->next_at, $row->lease, $row->send_until, $row->status, $row->problem, $row->created_at, $row->details];
        foreach ($values as $i => $value) {
            $insert->bindValue($i + 1, $value, $i === 4 ? PDO::PARAM_LOB : (is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR));
        }
        $insert->execute();
        // A locking read, because a snapshot does not show what another one inserted.
        $found = $this->run('SELECT idempotency_key FROM till_outbox WHERE kind = ? AND order_id = ? AND attempt = ?' . $this->lock(), $row->kind, $row->order, $row->attempt)->fetchAll(PDO::FETCH_NUM);
        if (!$found) {
            throw new TillError('till: could not serialize the insert of an attempt');
        }

        return $found[0][0] === $row->key;
    }

    public function newest(string $kind, string $order): ?Row
    {
        return $this->rows('kind = ? AND order_id = ? ORDER BY attempt DESC LIMIT 1', $kind, $order)[0] ?? null;
    }

    public function due(int $now, int $limit): array
    {
        return $this->rows('state IN (?, ?) AND next_at <= ? ORDER BY next_at LIMIT ?', Row::WRITTEN, Row::SENDING, $now, $limit);
    }

    public function open(int $now, int $limit): array
    {
        return $this->rows('state = ? AND next_at <= ? ORDER BY next_at LIMIT ?', Row::TAKEN, $now, $limit);
    }

    public function since(int $from, string $afterKey, int $limit): array
    {
        return $this->rows('created_at >= ? AND idempotency_key > ? ORDER BY idempotency_key LIMIT ?', $from, $afterKey, $limit);
    }

    public function attention(int $from, int $limit): array
    {
        return $this->rows(
            '(state IN (?, ?, ?) OR state = ? AND problem = ?) AND created_at >= ? ORDER BY created_at, idempotency_key LIMIT ?',
            Row::REFUSED, Row::LAPSED, Row::LOST, Row::TAKEN, Row::NEEDS_ATTENTION, $from, $limit,
        );
    }

    /** Runs a transaction of the store's own, and runs it again if another one undid it. */
    private function transaction(callable $work): mixed
    {
        if ($this->began || $this->inside()) {
            throw new InsideTransaction('till: this has to be committed by itself, and a transaction of yours is open: do it after your commit');
        }
        for ($n = 0;; $n++) {
            try {
                return $this->once($work);
            } catch (\PDOException $e) {
                if ($n >= self::MAX_CONFLICTS || !self::conflict($e)) {
                    throw $e;
                }
            }
            usleep(random_int(0, 10_000 << min($n, 5)));
        }
    }

    private function once(callable $work): mixed
    {
        $this->begin();
        $this->began = true;
        try {
            $result = $work();
            $this->commit();

            return $result;
        } catch (\Throwable $e) {
            try {
                $this->rollBack();
            } catch (\Throwable) {
                // The database has rolled back already.
            }
            throw $e;
        } finally {
            $this->began = false;
        }
    }

    /** Whether the database undid a transaction because another one was in its way. */
    private static function conflict(\PDOException $e): bool
    {
        return in_array($e->errorInfo[0] ?? '', ['40001', '40P01'], true) || in_array($e->errorInfo[1] ?? 0, [1213, 1205], true)
            || str_contains($e->getMessage(), 'database is locked');
    }

    public function count(Row $row, int $lease, int $next_at): bool
    {
        return $this->transaction(fn () => $this->run(
            'UPDATE till_outbox SET state = ?, tries = tries + 1, lease = ?, next_at = ? WHERE idempotency_key = ? AND lease = ? AND state = ?',
            Row::SENDING, $lease, $next_at, $row->key, $row->lease, $row->state,
        )->rowCount() > 0);
    }

    public function settle(Settlement $s): bool
    {
        return $this->transaction(fn () => $this->change($s));
    }

    private function change(Settlement $s): bool
    {
        $changes = $s->changes();
        $args = [...array_values($changes), $s->key];
        $where = ' WHERE idempotency_key = ?';
        if ($s->from !== null) {
            $where .= ' AND state IN (' . implode(', ', array_fill(0, count($s->from), '?')) . ')';
            array_push($args, ...$s->from);
        }
        if ($s->lease !== 0) {
            $where .= ' AND lease = ?';
            $args[] = $s->lease;
        }

        return $this->run('UPDATE till_outbox SET ' . implode(' = ?, ', array_keys($changes)) . ' = ?' . $where, ...$args)->rowCount() > 0;
    }

    public function apply(string $subject, string $kind, string $key, callable $fn): void
    {
        $this->transaction(function () use ($subject, $kind, $key, $fn): void {
            $rank = $this->rank();
            // A write first: SQLite takes its one lock now, the others that of this row.
            $this->run("INSERT INTO till_subject (subject, $rank, seen, sequence, updated_at) VALUES (?, 0, '', 0, ?)" . $this->ignore('subject'), $subject, self::now());
            $known = $this->run("SELECT $rank, seen, sequence FROM till_subject WHERE subject = ?" . $this->lock(), $subject)->fetchAll(PDO::FETCH_NUM)[0];
            $s = new Subject($subject, (int) $known[0], $known[1] === '' ? [] : explode(' ', $known[1]), (int) $known[2]);
            $this->save($fn($this->handle(), $s, $this->attemptsOf($kind, $key)));
        });
    }

    /** @return Row[] all attempts of the order that a key belongs to, locked in one order: two that are paid at the same moment know of each other */
    private function attemptsOf(string $kind, string $key): array
    {
        $found = $key === '' ? [] : $this->run('SELECT order_id FROM till_outbox WHERE idempotency_key = ? AND kind = ?', $key, $kind)->fetchAll(PDO::FETCH_NUM);

        return $found ? $this->rows('kind = ? AND order_id = ? ORDER BY attempt' . $this->lock(), $kind, $found[0][0]) : [];
    }

    private function save(Decision $d): void
    {
        if ($d->subject !== null) {
            $this->run('UPDATE till_subject SET ' . $this->rank() . ' = ?, seen = ?, sequence = ?, updated_at = ? WHERE subject = ?', $d->subject->rank, implode(' ', $d->subject->seen), $d->subject->sequence, self::now(), $d->subject->id);
        }
        if ($d->settle !== null) {
            $this->change($d->settle);
        }
        if ($d->cursor !== null) {
            $this->move($d->cursor, false);
        }
    }

    private static function now(): int
    {
        return (int) (microtime(true) * 1000);
    }

    public function cursor(string $name): Cursor
    {
        $found = $this->run('SELECT log_id, after_sequence FROM till_cursor WHERE name = ?', $name)->fetchAll(PDO::FETCH_NUM);

        return $found ? new Cursor($name, $found[0][0], (int) $found[0][1]) : new Cursor($name);
    }

    public function moveCursor(Cursor $c, bool $reset): void
    {
        $this->transaction(fn () => $this->move($c, $reset));
    }

    private function move(Cursor $c, bool $reset): void
    {
        $insert = 'INSERT INTO till_cursor (name, log_id, after_sequence) VALUES (?, ?, ?)';
        if ($reset) {
            $upsert = $this->driver() === 'mysql' ? ' ON DUPLICATE KEY UPDATE log_id = VALUES(log_id), after_sequence = VALUES(after_sequence)' : self::UPSERT;
            $this->run($insert . $upsert, $c->name, $c->log, $c->after);

            return;
        }
        $moved = $this->run('UPDATE till_cursor SET after_sequence = ? WHERE name = ? AND log_id = ? AND after_sequence < ?', $c->after, $c->name, $c->log, $c->after);
        if ($moved->rowCount() === 0) {
            $this->run($insert . $this->ignore('name'), $c->name, $c->log, $c->after);
        }
    }
}
