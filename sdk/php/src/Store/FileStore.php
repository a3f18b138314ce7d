<?php

declare(strict_types=1);

namespace Till\Store;

use Till\Cursor;
use Till\InsideTransaction;
use Till\Row;
use Till\Settlement;
use Till\Store;
use Till\Subject;
use Till\TillError;

/**
 * The store in a folder, for scripts and first steps: a line for each change, synced, and a lock between programs. Its transaction
 * is its own file, not one of your database: $store->update(fn (FileTx $tx) => $teller->collect(…)).
 */
final class FileStore implements Store
{
    /** @var resource who holds its lock may read on and append */
    private $turn;
    /** @var resource */
    private $file;
    private int $read = 0; // how much of the file is known
    /** @var array<string, Row> */
    private array $rows = [];
    /** @var array<string, string[]> keys by kind and order, oldest first */
    private array $orders = [];
    /** @var array<string, array> */
    private array $subjects = [];
    /** @var array<string, array> */
    private array $cursors = [];
    /** @var array<string, string> */
    private array $notes = [];
    private ?FileTx $tx = null;

    public function __construct(private readonly string $folder)
    {
        if (!is_dir($folder) && !@mkdir($folder, 0o700, true) && !is_dir($folder)) {
            throw new TillError("till: $folder cannot be made");
        }
        $this->turn = self::openFile("$folder/lock");
        $this->file = self::openFile("$folder/till.jsonl");
        $this->view(static fn () => null);
    }

    /** @return resource */
    private static function openFile(string $path)
    {
        $file = fopen($path, 'c+b') ?: throw new TillError("till: $path cannot be opened");
        @chmod($path, 0o600);

        return $file;
    }

    public function install(): void
    {
    }

    /** Runs a transaction. Nobody else writes meanwhile, so it makes no calls but collect, payOut, set and get. */
    public function update(callable $work): mixed
    {
        return $this->view(function () use ($work): mixed {
            $this->tx = new FileTx($this->notes);
            try {
                $result = $work($this->tx);
                $this->append($this->tx);

                return $result;
            } finally {
                $this->tx = null;
            }
        });
    }

    /** A value that a transaction set. */
    public function get(string $name): string
    {
        return $this->view(fn () => $this->notes[$name] ?? '');
    }

    /** @return array<string, string> every value that transactions set */
    public function all(): array
    {
        return $this->view(fn () => $this->notes);
    }

    /** Takes its turn, reads on, and calls a function. */
    private function view(callable $work): mixed
    {
        if ($this->tx !== null) {
            throw new InsideTransaction('till: this has to be committed by itself: do it after your transaction');
        }
        if (!flock($this->turn, LOCK_EX)) {
            throw new TillError("till: {$this->folder} cannot be locked");
        }
        try {
            $this->catchUp();

            return $work();
        } finally {
            flock($this->turn, LOCK_UN);
        }
    }

    /** Reads the lines that others wrote. A line without an end is that of a program that died: nobody was told that it was written, so it goes. */
    private function catchUp(): void
    {
        fseek($this->file, $this->read);
        while (($line = fgets($this->file)) !== false) {
            if (!str_ends_with($line, "\n")) {
                ftruncate($this->file, $this->read);
                break;
            }
            $this->add(json_decode($line, true, 64, JSON_THROW_ON_ERROR));
            $this->read += strlen($line);
        }
    }

    /** Writes a line and syncs it. A line that is not written whole is taken back. */
    private function append(FileTx $tx): void
    {
        $changes = array_filter($tx->changes);
        if (!$changes) {
            return;
        }
        $line = json_encode($changes, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE) . "\n";
        fseek($this->file, $this->read);
        if (fwrite($this->file, $line) !== strlen($line) || !fflush($this->file) || !fsync($this->file)) {
            ftruncate($this->file, $this->read);
            throw new TillError("till: {$this->folder} cannot be written");
        }
        $this->read += strlen($line);
        $this->add(json_decode($line, true, 64, JSON_THROW_ON_ERROR));
    }

    private function add(array $changes): void
    {
        foreach ($changes['rows'] ?? [] as $r) {
            if (!isset($this->rows[$r['key']])) {
                $this->orders[$r['kind'] . ' ' . $r['order']][] = $r['key'];
            }
            $this->rows[$r['key']] = new Row(...$r);
        }
        foreach ($changes['subjects'] ?? [] as $s) {
            $this->subjects[$s['id']] = $s;
        }
        foreach ($changes['cursors'] ?? [] as $c) {
            $this->cursors[$c['name']] = $c;
        }
        foreach ($changes['notes'] ?? [] as $name => $value) {
            $this->notes[$name] = $value;
        }
    }

    /** @return Row[] */
    private function attemptsOf(string $kind, string $order): array
    {
        return array_map(fn (string $key) => clone $this->rows[$key], $this->orders["$kind $order"] ?? []);
    }

    public function attempts(string $kind, string $order): array
    {
        $mine = array_filter($this->tx?->changes['rows'] ?? throw new TillError('till: begin a transaction with update'), static fn (array $r) => $r['kind'] === $kind && $r['order'] === $order);

        return [...$this->attemptsOf($kind, $order), ...array_map(static fn (array $r) => new Row(...$r), array_values($mine))];
    }

    public function put(Row $row): bool
    {
        foreach ($this->attempts($row->kind, $row->order) as $there) {
            if ($there->attempt === $row->attempt) {
                return false;
            }
        }
        $this->tx->changes['rows'][] = get_object_vars($row);

        return true;
    }

    public function newest(string $kind, string $order): ?Row
    {
        $found = $this->view(fn () => $this->attemptsOf($kind, $order));

        return $found ? end($found) : null;
    }

    /** @return Row[] the first rows that match, in an order */
    private function some(int $limit, callable $match, callable $order): array
    {
        $found = $this->view(fn () => array_values(array_map(static fn (Row $r) => clone $r, array_filter($this->rows, $match))));
        usort($found, static fn (Row $a, Row $b) => $order($a) <=> $order($b));

        return array_slice($found, 0, $limit);
    }

    public function due(int $now, int $limit): array
    {
        return $this->some($limit, static fn (Row $r) => in_array($r->state, [Row::WRITTEN, Row::SENDING], true) && $r->next_at <= $now, static fn (Row $r) => [$r->next_at, $r->key]);
    }

    public function open(int $now, int $limit): array
    {
        return $this->some($limit, static fn (Row $r) => $r->state === Row::TAKEN && $r->next_at <= $now, static fn (Row $r) => [$r->next_at, $r->key]);
    }

    public function since(int $from, string $afterKey, int $limit): array
    {
        return $this->some($limit, static fn (Row $r) => $r->created_at >= $from && strcmp($r->key, $afterKey) > 0, static fn (Row $r) => $r->key);
    }

    public function attention(int $from, int $limit): array
    {
        $match = static fn (Row $r) => $r->created_at >= $from
            && (in_array($r->state, [Row::REFUSED, Row::LAPSED, Row::LOST], true) || $r->state === Row::TAKEN && $r->problem === Row::NEEDS_ATTENTION);

        return $this->some($limit, $match, static fn (Row $r) => [$r->created_at, $r->key]);
    }

    public function count(Row $row, int $lease, int $next_at): bool
    {
        return $this->update(function (FileTx $tx) use ($row, $lease, $next_at): bool {
            $r = $this->rows[$row->key] ?? null;
            if ($r === null || $r->lease !== $row->lease || $r->state !== $row->state) {
                return false;
            }
            $tx->changes['rows'][] = ['state' => Row::SENDING, 'lease' => $lease, 'next_at' => $next_at, 'tries' => $r->tries + 1] + get_object_vars($r);

            return true;
        });
    }

    public function settle(Settlement $s): bool
    {
        return $this->update(fn (FileTx $tx) => $this->change($tx, $s));
    }

    private function change(FileTx $tx, Settlement $s): bool
    {
        $r = $this->rows[$s->key] ?? null;
        if ($r === null || $s->from !== null && !in_array($r->state, $s->from, true) || $s->lease !== 0 && $r->lease !== $s->lease) {
            return false;
        }
        $tx->changes['rows'][] = $s->changes() + get_object_vars($r);

        return true;
    }

    public function apply(string $subject, string $kind, string $key, callable $fn): void
    {
        $this->update(function (FileTx $tx) use ($subject, $kind, $key, $fn): void {
            $known = $this->subjects[$subject] ?? ['id' => $subject];
            $row = $this->rows[$key] ?? null;
            $d = $fn($tx, new Subject(...$known), $row !== null && $row->kind === $kind ? $this->attemptsOf($kind, $row->order) : []);
            if ($d->subject !== null) {
                $tx->changes['subjects'][] = get_object_vars($d->subject);
            }
            if ($d->settle !== null) {
                $this->change($tx, $d->settle);
            }
            if ($d->cursor !== null && $this->forward($d->cursor)) {
                $tx->changes['cursors'][] = get_object_vars($d->cursor);
            }
        });
    }

    /** Whether a cursor may move there. */
    private function forward(Cursor $c): bool
    {
        $old = $this->cursors[$c->name] ?? null;

        return $old === null || $old['log'] === $c->log && $old['after'] < $c->after;
    }

    public function cursor(string $name): Cursor
    {
        return $this->view(fn () => new Cursor(...($this->cursors[$name] ?? ['name' => $name])));
    }

    public function moveCursor(Cursor $c, bool $reset): void
    {
        $this->update(function (FileTx $tx) use ($c, $reset): void {
            if ($reset || $this->forward($c)) {
                $tx->changes['cursors'][] = get_object_vars($c);
            }
        });
    }
}
