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

    /**
     * Reads a number as it was typed, and says which of your methods it probably belongs to. The country may be left
     * out if the number begins with its calling code, or if all your methods are in one country.
     */
    public function predict(string $phone, ?string $country = null): PaymentMethodPrediction
    {
        $body = Json::render((new PredictPaymentMethod($phone, $country))->toJson());

        return $this->c->read(PaymentMethodPrediction::class, new Call(Operations::PREDICT_PAYMENT_METHOD, body: $body));
    }
}
