<?php

declare(strict_types=1);

namespace Till;

/** The calls about wallets. */
final class Wallets
{
    public function __construct(private readonly Client $c)
    {
    }

    /** Your wallets, one per currency. */
    public function list(): WalletList
    {
        return $this->c->read(WalletList::class, new Call(Operations::LIST_WALLETS));
    }
}
