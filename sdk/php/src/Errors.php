<?php

declare(strict_types=1);

namespace Till;

/** What all errors of this package have in common. */
class TillError extends \RuntimeException
{
}

/** What all errors of a call have in common. It holds no API key, no phone and no body. */
class CallError extends TillError
{
    protected const KIND = 'failed';

    /** @var string of the service, as ErrorCode::VALIDATION_FAILED; '' if there was none */
    public $code = '';

    /** @param FieldError[] $errors */
    public function __construct(
        string $code = '',
        /** Of HTTP; 0 if there was no answer. */
        public readonly int $status = 0,
        /** For people. */
        public readonly string $detail = '',
        /** Every mistake, with its pointer. */
        public readonly array $errors = [],
        /** Quote it when you ask for help. */
        public readonly string $request_id = '',
        /** Seconds. */
        public readonly float $retry_after = 0.0,
        /** Of a create. */
        public readonly string $idempotency_key = '',
        /** How many requests were made. */
        public readonly int $tries = 0,
        /** Why there was no good answer: timeout, reset, cut, not_json, redirect, … */
        public readonly string $reason = '',
        /** With idempotency_key_reused: whose key it is. */
        public readonly ?string $payment_id = null,
        public readonly ?string $payout_id = null,
        /** Likewise; with refund_in_progress the one that is open. */
        public readonly ?string $refund_id = null,
        /** With refund_exceeds_payment: what is left to give back, in minor units. */
        public readonly ?string $refundable = null,
    ) {
        $text = implode(': ', array_filter([$code, $reason, $detail], static fn (string $s) => $s !== ''));
        if ($status !== 0) {
            $text = $status . ' ' . $text;
        }
        foreach ($errors as $e) {
            $text .= '; ' . $e->pointer . ' ' . $e->code;
        }
        if ($request_id !== '') {
            $text .= ' (request ' . $request_id . ')';
        }
        parent::__construct('till: ' . static::KIND . ': ' . $text);
        $this->code = $code;
    }
}

/** The service does not do this. Of a create: nothing exists, and the key is not used up. */
final class Refused extends CallError
{
    protected const KIND = 'refused';
}

/** Nothing happened, and it may be tried later. */
final class Unavailable extends CallError
{
    protected const KIND = 'unavailable';
}

/** It may have happened. Ask again with the same key, never with another one. */
final class Unclear extends CallError
{
    protected const KIND = 'unclear';
}

/** A mistake in the program that uses this package. */
class Mistake extends TillError
{
}

/** There is no API key. */
final class NoKey extends Mistake
{
}

/** The API key has characters that no key has. */
final class BadKey extends Mistake
{
}

/** A test key where a live one is expected, or the other way round. */
final class WrongMode extends Mistake
{
}

/** A create needs an idempotency key that you have stored; see Teller. */
final class NoIdempotencyKey extends Mistake
{
}

/** The base address is an https:// URL, or http:// on this machine. */
final class BadBaseUrl extends Mistake
{
}

/** A webhook secret is whsec_ and the base64 of 24 to 64 bytes. */
final class BadSecret extends Mistake
{
}

/** What has to be committed by itself was asked for inside a transaction of yours: send after your commit. */
final class InsideTransaction extends Mistake
{
}

/** A list cannot be gone through: the service sent the same page again. */
final class NoProgress extends TillError
{
}

/** A mistake with money. */
class MoneyError extends TillError
{
}

/** An amount is digits in minor units, as "5000". */
final class BadAmount extends MoneyError
{
}

/** No currency that is known here. */
final class BadCurrency extends MoneyError
{
}

/** The currencies differ. */
final class OtherCurrency extends MoneyError
{
}

/** More decimals than the currency has. */
final class TooManyDecimals extends MoneyError
{
}

/** The result is not whole minor units. */
final class NotExact extends MoneyError
{
}

/** The result is less than nothing. */
final class Negative extends MoneyError
{
}

/** A split has 1 to 10 000 parts. */
final class BadParts extends MoneyError
{
}

/** Says what is wrong with a phone number, in one word. */
final class PhoneError extends TillError
{
    public function __construct(public readonly string $word)
    {
        parent::__construct('till: the phone number is wrong: ' . $word);
    }
}

/** Says why a delivery is not believed, in one word. */
class WebhookError extends TillError
{
    public const WORD = 'malformed';

    /** Skew is, of TooOld and TooNew, how many seconds its time is from ours. */
    public function __construct(public readonly int $skew = 0)
    {
        parent::__construct('till: webhook: ' . static::WORD);
    }
}

/** A header is missing, or its time is none. */
final class MissingHeader extends WebhookError
{
    public const WORD = 'missing_header';
}

/** Nobody who knows a secret signed this. */
final class BadSignature extends WebhookError
{
    public const WORD = 'bad_signature';
}

/** It was signed more than five minutes ago. */
final class TooOld extends WebhookError
{
    public const WORD = 'too_old';
}

/** It was signed more than five minutes from now. */
final class TooNew extends WebhookError
{
    public const WORD = 'too_new';
}

/** It has more than 1 MiB. */
final class TooLarge extends WebhookError
{
    public const WORD = 'too_large';
}

/** It is well signed, and no event. */
final class Malformed extends WebhookError
{
    public const WORD = 'malformed';
}

/** Says why a way back from a checkout's page is not believed. Word is no_secret (a mistake of the program), unsigned, altered, too_old or too_new. */
final class ReturnError extends TillError
{
    public function __construct(public readonly string $word)
    {
        parent::__construct('till: return: ' . $word);
    }
}

/** Says what is wrong with a wish before anything was written. */
final class InvalidWish extends TillError
{
    public function __construct(public readonly string $member, public readonly string $problem)
    {
        parent::__construct('till: ' . $member . ' ' . $problem);
    }
}

/** The order has an attempt with another wish that may still bring money; or a refund that may still give it back. */
final class AttemptOpen extends TillError
{
    /** Expires_at is ms since 1970: when the customer's time ends, or when it is sent no more. */
    public function __construct(public readonly string $order, public readonly string $state, public readonly int $expires_at)
    {
        parent::__construct("till: order $order has an open attempt ($state)");
    }
}

/** An attempt for the order was paid. */
final class AlreadyPaid extends TillError
{
    public function __construct(public readonly string $order)
    {
        parent::__construct("till: order $order is paid already");
    }
}

/** No attempt for the order was paid, so there is nothing to give back. */
final class NotPaid extends TillError
{
    public function __construct(public readonly string $order)
    {
        parent::__construct("till: order $order is not paid");
    }
}

/** The order has no attempt. */
final class NoAttempt extends TillError
{
}

/** The outcome is not known yet. */
final class StillOpen extends TillError
{
}

/** The attempt may have arrived, so it cannot be withdrawn. */
final class MayArrive extends TillError
{
}

/** Only an attempt that is lost is sent again by hand. */
final class NotLost extends TillError
{
}

/** There is no open attempt to abandon. */
final class NotStuck extends TillError
{
}

/** Another program changed the attempt at the same moment. */
final class OtherWrite extends TillError
{
}

/** A part of a sweep failed; the rest was done, and the next sweep tries again. */
final class SweepFailed extends TillError
{
    /** @param \Throwable[] $errors */
    public function __construct(public readonly Report $report, public readonly array $errors)
    {
        parent::__construct('till: ' . implode('; ', array_map(static fn (\Throwable $e) => $e->getMessage(), $errors)), 0, $errors[0] ?? null);
    }
}

/** Refused if a read by the key finds nothing, else unclear. For this package alone. */
final class LookFirst extends \Exception
{
    public function __construct(public readonly CallError $absent, public readonly CallError $unknown)
    {
        parent::__construct($unknown->getMessage());
    }
}
