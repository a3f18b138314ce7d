<?php

declare(strict_types=1);

namespace Till;

/**
 * Collects, opens checkouts, pays out, refunds, listens and sweeps. OnChange(Change, tx) is called once for each change of an attempt, inside a
 * transaction of the store. If it throws, nothing is saved and the change comes again. What does not roll back, as mail,
 * belongs into a queue that it writes in the transaction.
 */
final class Teller
{
    use Inbox;
    use Outbox;
    use Pages;
    use Sweep;

    private const FIRST_DUE = 1000; // ms: when a sweep sends a wish that nobody called send for
    private const LEASE_GRACE = 1000; // ms after the deadline of a try, of which nobody told the end, the next one is due
    private const WAIT_FOR_OTHER = 1.0; // s that send leaves a row to another worker. After that both may: the key makes it one payment.

    // Bounds of one sweep.
    private const MAX_DUE = 100;
    private const MAX_OPEN = 200;
    private const MAX_ATTENTION = 100;
    private const LOG_PAGE = 200;
    private const LOOK_BACK = 7 * 24 * 3600 * 1000; // ms

    private readonly int $paymentUntil;
    private readonly int $payoutUntil;
    private readonly int $lookAfter;
    private readonly int $openAfter;
    private float $nextCall = 0.0;
    /** @var callable */
    private $onChange;
    /** @var ?callable */
    private $onProgress;
    /** @var ?callable */
    private $onOther;
    /** @var callable(): float */
    private $clock;

    /**
     * OnProgress is told about pending and processing, onOther(Event, tx) about events that are no change of an attempt, each once,
     * and about checkouts that this store did not make; without it they are accepted and forgotten. PaymentUntil (checkouts, too)
     * and payoutUntil (refunds, too) are how many seconds a wish is sent: nobody's
     * phone rings at night for an order of the afternoon. LookAfter is how long after the deadline of a try the service is
     * asked whether it arrived, openAfter how long a payment that was taken is left to webhooks and the log.
     *
     * Foreign asks for news of all payments, payouts and refunds of the client, those too that this store did not make: with
     * another store, or by hand. Their change has no order. Without it the function hears of its own orders only, and of
     * refunds of their payments, also those that others made. Checkouts that this store did not make, as those of links, come
     * to onOther either way. FromStart begins a new store at the start of the event log; otherwise it
     * begins at the end, as what was paid before it was made is no news.
     */
    public function __construct(
        private readonly Client $client,
        private readonly Store $store,
        callable $onChange,
        ?callable $onProgress = null,
        ?callable $onOther = null,
        float $paymentUntil = 600.0,
        float $payoutUntil = 86_400.0,
        float $lookAfter = 60.0,
        float $openAfter = 120.0,
        private readonly string $cursorName = 'events',
        ?callable $clock = null,
        private readonly bool $foreign = false,
        private readonly bool $fromStart = false,
    ) {
        [$this->onChange, $this->onProgress, $this->onOther] = [$onChange, $onProgress, $onOther];
        $this->paymentUntil = (int) ($paymentUntil * 1000);
        $this->payoutUntil = (int) ($payoutUntil * 1000);
        $this->lookAfter = (int) ($lookAfter * 1000);
        $this->openAfter = (int) ($openAfter * 1000);
        $this->clock = $clock ?? static fn (): float => microtime(true);
    }

    /**
     * Writes a wish to be paid in your transaction, beside the order, with its key and the bytes that will be sent. It makes no
     * call. Order is your id of what is paid, phone is digits only (see Phone::read), reference is order if empty. The same wish
     * again while the attempt is open changes nothing: a double click is one payment.
     */
    public function collect(
        string|int $order,
        string $method,
        Money $amount,
        #[\SensitiveParameter] string $phone,
        string $country = '',
        string $name = '',
        string $email = '',
        string $reference = '',
        string $description = '',
        ?CreatePaymentCharge $charge = null,
        ?CreatePaymentTax $tax = null,
        array|\stdClass|null $metadata = null,
    ): void {
        $order = (string) $order; // a number is kept as its digits
        self::check($order, $method, $amount, $phone, $description, $reference);
        $customer = new CreatePaymentCustomer($phone, $name ?: null, $email ?: null);
        $metadata = $metadata === [] ? new \stdClass() : $metadata;
        $this->write('payment', $order, $this->paymentUntil, static fn (string $key) => self::render(
            new CreatePayment($method, $amount, $key, $customer, $country ?: null, self::or($reference, $order), $description ?: null, $charge, $tax, $metadata),
        ));
    }

    /** Writes a wish to pay somebody in your transaction, like collect. */
    public function payOut(
        string|int $order,
        string $method,
        Money $amount,
        #[\SensitiveParameter] string $phone,
        string $country = '',
        string $reference = '',
        string $description = '',
        array|\stdClass|null $metadata = null,
    ): void {
        $order = (string) $order; // a number is kept as its digits
        self::check($order, $method, $amount, $phone, $description, $reference);
        $metadata = $metadata === [] ? new \stdClass() : $metadata;
        $this->write('payout', $order, $this->payoutUntil, static fn (string $key) => self::render(new CreatePayout(
            method: $method,
            amount: $amount,
            idempotency_key: $key,
            recipient: new CreatePayoutRecipient($phone),
            country: $country ?: null,
            reference: self::or($reference, $order),
            description: $description ?: null,
            metadata: $metadata,
        )));
    }

    /**
     * Writes a wish to be paid on a page of the service, by any number and any of your methods, in your transaction, like
     * collect. An order is asked for in one way at a time: while a payment or another checkout of it may bring money, that is
     * refused. The page shows reference (order if empty) and description, and leads back to return_url. sendCheckout makes the
     * page.
     *
     * @param ?string[] $methods
     */
    public function checkout(
        string|int $order,
        Money $amount,
        string $reference = '',
        string $description = '',
        ?CreateCheckoutCharge $charge = null,
        ?CreateCheckoutTax $tax = null,
        array|\stdClass|null $metadata = null,
        ?int $expires_in_seconds = null,
        string $country = '',
        ?array $methods = null,
        #[\SensitiveParameter] string $phone = '',
        bool $phone_fixed = false,
        string $return_url = '',
        string $language = '',
    ): void {
        $order = (string) $order;
        self::checkOrder($order, $description, $reference);
        self::checkAmount($amount);
        if ($phone !== '' || $phone_fixed) {
            self::checkPhone($phone);
        }
        $metadata = $metadata === [] ? new \stdClass() : $metadata;
        $this->write('checkout', $order, $this->paymentUntil, static fn (string $key) => self::render(new CreateCheckout(
            amount: $amount,
            idempotency_key: $key,
            reference: self::or($reference, $order),
            description: $description ?: null,
            charge: $charge,
            tax: $tax,
            metadata: $metadata,
            expires_in_seconds: $expires_in_seconds,
            country: $country ?: null,
            methods: $methods,
            phone: $phone ?: null,
            phone_fixed: $phone_fixed ?: null,
            return_url: $return_url ?: null,
            language: $language ?: null,
        )));
    }

    /**
     * Writes a wish to give a payment back in your transaction, all that is left or an amount, to who paid it, like collect. The
     * order must be paid, and no refund of it may be open: the same wish again is refused, too, because two refunds of the same
     * sum may be meant. Payment, as $change->extra(), is needed only if the order was paid more than once.
     */
    public function refund(
        string|int $order,
        ?Money $amount = null,
        string $reason = '',
        string $payment = '',
        string $reference = '',
        string $description = '',
        array|\stdClass|null $metadata = null,
    ): void {
        $order = (string) $order;
        self::checkOrder($order, $description, $reference);
        if ($amount !== null) {
            self::checkAmount($amount);
        }
        $of = $payment === '' ? $this->paidBy($order) : $payment;
        $metadata = $metadata === [] ? new \stdClass() : $metadata;
        $this->write('refund', $order, $this->payoutUntil, static fn (string $key) => self::render(new CreateRefund(
            payment_id: $of,
            idempotency_key: $key,
            amount: $amount,
            reason: $reason ?: null,
            reference: self::or($reference, $order),
            description: $description ?: null,
            metadata: $metadata,
        )));
    }

    /** The id of the one payment that an order was paid by. */
    private function paidBy(string $order): string
    {
        $attempts = [...$this->store->attempts('payment', $order), ...$this->store->attempts('checkout', $order)];
        $paid = array_values(array_filter($attempts, static fn (Row $row) => $row->paid()));
        $row = $paid[0] ?? throw new NotPaid($order);
        if (count($paid) > 1 || $row->status === 'overpaid') {
            throw new InvalidWish('payment', 'is missing: the order was paid more than once');
        }

        return $row->kind === 'checkout' ? self::pageOf($row->details)['payment_id'] ?? '' : $row->remote_id;
    }

    private static function or(string $a, string $b): string
    {
        return $a === '' ? $b : $a;
    }

    private static function render(CreatePayment|CreatePayout|CreateRefund|CreateCheckout $wish): string
    {
        try {
            return Json::render($wish->toJson());
        } catch (\TypeError $e) {
            $member = strtok($e->getMessage(), ':');
            throw new InvalidWish(property_exists($wish, $member) ? $member : 'metadata', 'is no JSON: ' . $e->getMessage());
        }
    }

    /** What the service takes, checked before a row is written that it would refuse. */
    private static function check(string $order, string $method, Money $amount, #[\SensitiveParameter] string $phone, string $description, string $reference): void
    {
        self::checkOrder($order, $description, $reference);
        if ($method === '') {
            throw new InvalidWish('method', 'is missing');
        }
        self::checkAmount($amount);
        self::checkPhone($phone);
    }

    private static function checkPhone(#[\SensitiveParameter] string $phone): void
    {
        if (preg_match('/^[0-9]{1,15}$/D', $phone) !== 1) {
            throw new InvalidWish('phone', 'is digits only, calling code first');
        }
    }

    private static function checkAmount(Money $amount): void
    {
        try {
            $amount->check();
        } catch (MoneyError) {
            throw new InvalidWish('amount', 'is digits in minor units of a currency');
        }
        if ($amount->value === '0' || strlen($amount->value) > 15) {
            throw new InvalidWish('amount', 'is more than nothing and has at most 15 digits');
        }
    }

    private static function checkOrder(string $order, string $description, string $reference): void
    {
        if ($order === '' || strlen($order) > 128) {
            throw new InvalidWish('order', 'has 1 to 128 bytes');
        }
        foreach (['description' => [$description, 255], 'reference' => [$reference, 128]] as $name => [$text, $most]) {
            if (preg_match('/^.{0,' . $most . '}$/Dus', $text) !== 1) {
                throw new InvalidWish($name, 'is too long, or not UTF-8');
            }
        }
    }

    /**
     * Receives a delivery, and returns what to answer. Give the old secret too while a rotation lasts. The answer is 204 when your
     * function has been called or the news was old, 400 with one word for what is not believed, and 500 if your function
     * failed: then the delivery comes again.
     *
     * @param string|string[] $secrets
     */
    public function receive(#[\SensitiveParameter] string|array $secrets, Request $request): Reply
    {
        if (strtoupper($request->method) !== 'POST') {
            return new Reply('post', 405, ['Allow' => 'POST', 'Content-Type' => 'text/plain; charset=utf-8']);
        }
        if ($request->body === '' && (int) $request->header('content-length') > 0) {
            // Something in front of this read the body.
            return new Reply('body_was_read: put the Till webhook before what parses bodies', 500);
        }
        try {
            $e = Webhook::verify($secrets, $request, ($this->clock)());
        } catch (WebhookError $refused) {
            return new Reply($refused::WORD . $this->clockHint($refused), 400, error: $refused);
        } catch (BadSecret $wrong) {
            return new Reply('no secret', 500, error: $wrong);
        }
        try {
            $this->applyEvent($e, null, $this->foreign);
        } catch (\Throwable $error) {
            return new Reply('not done', 500, error: $error);
        }

        return new Reply('', 204);
    }

    /** Names the difference of the clocks where an answer of the service told it: most deliveries that are too old are a clock that is wrong. */
    private function clockHint(WebhookError $e): string
    {
        $skew = $this->client->clockSkew();
        if (!($e instanceof TooOld || $e instanceof TooNew) || $skew === null || abs($skew) < 60) {
            return '';
        }

        return sprintf(": this machine's clock is %d s %s the service's", abs($skew), $skew > 0 ? 'behind' : 'ahead of');
    }
}
