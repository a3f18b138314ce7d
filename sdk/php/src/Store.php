<?php

declare(strict_types=1);

namespace Till;

/** Three tables in your database, on your connection. */
interface Store
{
    /** Makes the tables where they are missing, and the columns that came later. */
    public function install(): void;

    /** @return Row[] the attempts of an order, oldest first, as your transaction sees them */
    public function attempts(string $kind, string $order): array;

    /** Inserts a row in your transaction. False if the order has an attempt of this number already; it can go on then, and sees it. */
    public function put(Row $row): bool;

    /** The newest attempt of an order, null if there is none. */
    public function newest(string $kind, string $order): ?Row;

    /** @return Row[] to send, those first that are due longest */
    public function due(int $now, int $limit): array;

    /**
     * Counts a try in a commit of its own, before its first byte: the row is sending from then on. False if another one counted
     * first: if the lease is not that of row any more. InsideTransaction if a transaction of yours is open.
     */
    public function count(Row $row, int $lease, int $next_at): bool;

    /** Changes a row, and tells whether it was as expected. */
    public function settle(Settlement $s): bool;

    /** @return Row[] that are taken and to be read again */
    public function open(int $now, int $limit): array;

    /** @return Row[] by key, made at or after a time, whose key is greater */
    public function since(int $from, string $afterKey, int $limit): array;

    /** @return Row[] made at or after a time that a person should see */
    public function attention(int $from, int $limit): array;

    /**
     * Opens a transaction, locks the subject and all attempts of the order that has the key, calls fn with your handle and
     * these, saves what it decides, and commits. If fn throws, nothing is saved. It may be called again after a conflict
     * with another transaction, which rolled the first one back.
     *
     * @param callable(mixed, Subject, Row[]): Decision $fn
     */
    public function apply(string $subject, string $kind, string $key, callable $fn): void;

    /** A cursor; with 0 if it never moved. */
    public function cursor(string $name): Cursor;

    /** Moves a cursor forward within its log. With reset it may go anywhere. */
    public function moveCursor(Cursor $c, bool $reset): void;
}
