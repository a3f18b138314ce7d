<?php

declare(strict_types=1);

namespace Till\Store;

use Illuminate\Database\Connection;
use PDO;

/** The store on a connection of Laravel, so that Eloquent writes in the same transaction. Your function runs inside it. */
final class LaravelStore extends PdoStore
{
    public function __construct(private readonly Connection $connection)
    {
        parent::__construct(null);
    }

    protected function pdo(): PDO
    {
        return $this->connection->getPdo();
    }

    protected function handle(): mixed
    {
        return $this->connection;
    }

    protected function inside(): bool
    {
        return $this->connection->transactionLevel() > 0;
    }

    protected function begin(): void
    {
        $this->connection->beginTransaction();
    }

    protected function commit(): void
    {
        $this->connection->commit();
    }

    protected function rollBack(): void
    {
        $this->connection->rollBack();
    }
}
