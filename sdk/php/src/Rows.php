<?php

declare(strict_types=1);

namespace Till;

/** An attempt in the outbox. Times are milliseconds since 1970; 0 is none. */
final class Row
{
    // States: written, sending, taken, ended; and refused, lapsed, lost.
    public const WRITTEN = 'written'; // provably nothing arrived at the service
    public const SENDING = 'sending'; // a try was counted, and no answer says that nothing arrived
    public const TAKEN = 'taken'; // the service has it
    public const ENDED = 'ended'; // its status is final
    public const REFUSED = 'refused'; // the service does not take it; nothing exists
    public const LAPSED = 'lapsed'; // it was not sent in its time, or withdrawn; nothing exists
    public const LOST = 'lost'; // the service had it, or of a payout or refund may have had it, and does not know it

    // Words in problem beside codes of the service.
    public const ABANDONED = 'abandoned';
    public const WITHDRAWN = 'withdrawn';
    public const STALE = 'stale';
    public const NEEDS_ATTENTION = 'needs_attention'; // a person at the service looks at it

    public function __construct(
        public string $key, // the idempotency key, drawn once
        public string $kind, // payment, payout, refund or checkout
        public string $order,
        public int $attempt,
        public string $body, // the bytes that every try sends
        public string $state = self::WRITTEN,
        public int $tries = 0,
        public int $next_at = 0, // when to send it, or to read it again
        public int $lease = 0, // the deadline of its last try; 0 before the first
        public int $send_until = 0, // after this it is posted no more; once taken, when the customer's time ends
        public string $remote_id = '', // the id of the payment, payout, refund or checkout
        public string $status = '', // the last kind of news, without its noun: success, late_success, reversed, …
        public string $problem = '', // why a person should look
        public int $created_at = 0,
        public string $details = '', // JSON: status, detail, request_id and errors of the problem; url, return_secret and payment_id of a checkout; '' where there are none
    ) {
    }

    /** Whether an attempt may still bring money. */
    public function open(): bool
    {
        return in_array($this->state, [self::WRITTEN, self::SENDING, self::TAKEN, self::LOST], true) && $this->problem !== self::ABANDONED;
    }

    /** Whether an attempt brought money that stands. */
    public function paid(): bool
    {
        return self::brought($this->status);
    }

    /** Whether a status says that money came. */
    public static function brought(string $status): bool
    {
        return in_array($status, ['success', 'late_success', 'paid', 'overpaid'], true);
    }

    /** Whether an attempt ended without money. */
    public function unpaid(): bool
    {
        return in_array($this->status, ['failed', 'expired', 'cancelled'], true);
    }
}

/** Changes a row of the outbox if it is as expected. Null, and 0 of a time, leave a column as it is. */
final class Settlement
{
    /** @param string[]|null $from the states that it may be in; null for any */
    public function __construct(
        public string $key = '',
        public ?array $from = null,
        public int $lease = 0, // if not 0, its lease must be this: no other try was counted since
        public ?string $state = null,
        public int $next_at = 0,
        public int $send_until = 0,
        public ?string $remote_id = null,
        public ?string $status = null,
        public ?string $problem = null,
        public ?string $details = null,
    ) {
    }

    /** @return array<string, int|string> the columns that change */
    public function changes(): array
    {
        $out = array_filter(['next_at' => $this->next_at, 'send_until' => $this->send_until]);
        foreach (['state', 'remote_id', 'status', 'problem', 'details'] as $name) {
            if ($this->{$name} !== null) {
                $out[$name] = $this->{$name};
            }
        }

        return $out ?: throw new TillError('till: a settlement that changes nothing');
    }
}

/** What is known about a payment, payout, refund or other event. */
final class Subject
{
    /** @param string[] $seen kinds of news, in the order of their coming */
    public function __construct(public string $id, public int $rank = 0, public array $seen = [], public int $sequence = 0)
    {
    }
}

/** How far the event log was read. */
final class Cursor
{
    public function __construct(public string $name, public string $log = '', public int $after = 0)
    {
    }
}

/** What an application saves, in its transaction. */
final class Decision
{
    public function __construct(public ?Subject $subject = null, public ?Settlement $settle = null, public ?Cursor $cursor = null)
    {
    }
}

/** News about an attempt. */
final class Change
{
    public function __construct(
        public string $kind, // as payment.success; or payment.refused, .lapsed, .lost, which are no events of the service, and so for payouts, refunds and checkouts
        public string $order = '', // '' for a payment that this outbox did not make; see the option foreign
        public string $reference = '', // as the payment, payout, refund or checkout has it
        public int $attempt = 0, // of a refund, which one of the order's; 0 if it was made elsewhere
        public string $key = '', // the idempotency key
        public bool $late = false, // the money came after it had failed, expired or been cancelled
        public bool $alreadyPaid = false, // another attempt of the order was paid before: give this one back
        public ?Payment $payment = null, // null when it was refused, lapsed or lost, and for payouts, refunds and checkouts
        public ?Payout $payout = null,
        public string $event_id = '', // '' where no event brought the news
        public int $sequence = 0,
        public string $problem = '', // why it was refused, lapsed or lost: a code of the service, or stale
        public string $detail = '', // of the problem, for people
        /** @var FieldError[] */
        public array $errors = [],
        public ?Refund $refund = null,
        public ?Money $left = null, // of a refund's payment, what can still go back, with refunded(); null if the service does not know the payment
        public Checkout|CheckoutSnapshot|null $checkout = null,
    ) {
    }

    /** The customer has paid: success, or money that came late. Of a checkout it is the amount of your wish. */
    public function paid(): bool
    {
        return in_array($this->kind, ['payment.success', 'payment.late_success', 'checkout.paid'], true);
    }

    /**
     * The payment ended without money, or the checkout expired or was cancelled. A customer who declines on a page may pay
     * by another number, so that is no news.
     */
    public function failed(): bool
    {
        return in_array($this->kind, ['payment.failed', 'payment.expired', 'checkout.expired', 'checkout.cancelled'], true);
    }

    /** A checkout that was paid was paid once more: give back the payment extra(). The order was shipped when it was paid first. */
    public function overpaid(): bool
    {
        return $this->kind === 'checkout.overpaid';
    }

    /** A checkout says of itself that it was paid, and shows another amount or currency than your wish. Do not ship: a person looks. */
    public function otherAmount(): bool
    {
        return $this->kind === 'checkout.other_amount';
    }

    /**
     * The payment that is to be given back: the second one of an overpaid checkout, or the one that paid an order that was
     * paid before; '' otherwise.
     */
    public function extra(): string
    {
        if ($this->paid() && $this->alreadyPaid) {
            return (string) ($this->checkout !== null ? $this->checkout->payment_id : $this->payment?->id);
        }
        foreach ($this->overpaid() ? $this->checkout->asks ?? [] : [] as $ask) {
            if ($ask->status === 'success' && $ask->payment_id !== null && $ask->payment_id !== $this->checkout->payment_id) {
                return $ask->payment_id;
            }
        }

        return '';
    }

    /** The operator took the money back. */
    public function takenBack(): bool
    {
        return $this->kind === 'payment.reversed';
    }

    /** The recipient has the money. */
    public function paidOut(): bool
    {
        return in_array($this->kind, ['payout.success', 'payout.late_success'], true);
    }

    /** The payout ended, and its money is yours again. */
    public function payoutFailed(): bool
    {
        return in_array($this->kind, ['payout.failed', 'payout.cancelled'], true);
    }

    /** The customer has the money of the refund back, and left is what can still go back. Book it by refund->id. */
    public function refunded(): bool
    {
        return in_array($this->kind, ['refund.success', 'refund.late_success'], true);
    }

    /** The refund ended, and its money is yours again. */
    public function refundFailed(): bool
    {
        return in_array($this->kind, ['refund.failed', 'refund.cancelled'], true);
    }

    /** The service does not take the payment, payout, refund or checkout, and why: nothing exists. */
    public function refused(): bool
    {
        return str_ends_with($this->kind, '.' . Row::REFUSED);
    }

    /** It was not sent in its time: nothing exists that somebody could pay. */
    public function lapsed(): bool
    {
        return str_ends_with($this->kind, '.' . Row::LAPSED);
    }

    /** The service does not know a payment or checkout any more that it had, or a payout or refund that it may have had: a person looks. */
    public function lost(): bool
    {
        return str_ends_with($this->kind, '.' . Row::LOST);
    }
}

/**
 * How far an attempt got. State is taken (the service has it), later (it cannot take it now; nothing exists; it is sent
 * again), unclear (not known yet; say "check your phone" all the same), lapsed (it was not sent in its time; nothing
 * exists) or lost (the service had it, or of a payout or refund may have had it, and does not know it: a person looks).
 */
final class Progress
{
    public function __construct(
        public string $state,
        public string $id = '', // of the payment, payout, refund or checkout, once taken
        public Payment|Payout|Refund|NewCheckout|null $subject = null, // as the service answered, if it just did
        public bool $replayed = false,
        public ?CallError $error = null, // Unavailable or Unclear, for the log
        public string $url = '', // of a checkout, once taken: send the customer there
        public string $return_secret = '', // of a checkout, once taken: for Returned::verify
    ) {
    }
}

/** An attempt that a person should look at. */
final class Attention
{
    /** Problem is needs_attention, stale, withdrawn, or a code of the service. */
    public function __construct(public string $kind, public string $order, public string $key, public string $state, public string $problem)
    {
    }
}

/** What a sweep did. */
final class Report
{
    public int $sent = 0; // attempts that the service took
    public int $waiting = 0; // attempts that are sent again later
    public int $applied = 0; // events of the log that were looked at
    public int $read = 0; // open attempts that were read
    /** @var Attention[] */
    public array $attention = [];
}
