<?php

declare(strict_types=1);

namespace Till\Store;

/** A transaction of the file store: what is written in it becomes one line, or nothing. */
final class FileTx
{
    /** @var array<string, array> */
    public array $changes = ['rows' => [], 'subjects' => [], 'cursors' => [], 'notes' => []];

    public function __construct(private readonly array $notes)
    {
    }

    /** Keeps a small value under a name, in the transaction. */
    public function set(string $name, string $value): void
    {
        $this->changes['notes'][$name] = $value;
    }

    /** A value that was set; '' if none was. */
    public function get(string $name): string
    {
        return $this->changes['notes'][$name] ?? $this->notes[$name] ?? '';
    }
}
