<?php

declare(strict_types=1);

namespace Till;

/** The calls about methods. */
final class PaymentMethods
{
    public function __construct(private readonly Client $c)
    {
    }

    /** The methods enabled for you. */
    public function list(): PaymentMethodList
    {
        return $this->c->read(PaymentMethodList::class, new Call(Operations::LIST_PAYMENT_METHODS));
    }
}
