<?php

declare(strict_types=1);

namespace Till;

/**
 * An amount in minor units of its currency, as a text: "5000" is 5 000 francs of XAF, which has no decimals, and 50
 * shillings of KES, which has two. It is never a float.
 */
final class Money implements \JsonSerializable, \Stringable
{
    private const MAX_DIGITS = 38; // bounds what arithmetic reads and makes
    private const MAX_PARTS = 10_000;

    private function __construct(public readonly string $value, public readonly string $currency)
    {
    }

    /** An amount in minor units. It is checked where it is used; see check. */
    public static function minor(mixed $value, string $currency): self
    {
        return new self(self::text($value), $currency);
    }

    /** Reads an amount in units of the currency: "50.00" of KES is "5000". */
    public static function major(mixed $amount, string $currency): self
    {
        $amount = self::text($amount);
        $places = Currencies::DECIMALS[$currency] ?? null;
        if ($places === null) {
            throw new BadCurrency('till: no currency that is known here');
        }
        if (preg_match('/^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/D', $amount, $m) !== 1 || strlen($m[1]) > self::MAX_DIGITS) {
            throw new BadAmount('till: an amount is digits, as "50.00"');
        }
        $fraction = $m[2] ?? '';
        if (strlen($fraction) > $places) {
            throw new TooManyDecimals('till: more decimals than the currency has');
        }
        $digits = ltrim($m[1] . str_pad($fraction, $places, '0'), '0');

        return new self($digits === '' ? '0' : $digits, $currency);
    }

    private static function text(mixed $value): string
    {
        if (is_int($value) || is_string($value)) {
            return (string) $value;
        }
        throw new \TypeError('till: money is never a float: give a text');
    }

    /** Throws BadAmount or BadCurrency unless this is an amount of a currency. */
    public function check(): void
    {
        if (preg_match('/^(0|[1-9][0-9]*)$/D', $this->value) !== 1 || strlen($this->value) > self::MAX_DIGITS) {
            throw new BadAmount('till: an amount is digits in minor units, as "5000"');
        }
        if (preg_match('/^[A-Z]{3}$/D', $this->currency) !== 1) {
            throw new BadCurrency('till: no currency that is known here');
        }
    }

    private function both(self $other): void
    {
        $this->check();
        $other->check();
        if ($this->currency !== $other->currency) {
            throw new OtherCurrency('till: the currencies differ');
        }
    }

    private function result(string $units): self
    {
        if (strlen($units) > self::MAX_DIGITS) {
            throw new BadAmount('till: the result has too many digits');
        }

        return new self($units, $this->currency);
    }

    /** The sum. */
    public function add(self $other): self
    {
        $this->both($other);

        return $this->result(Big::add($this->value, $other->value));
    }

    /** The difference, which is not negative. */
    public function subtract(self $other): self
    {
        $this->both($other);
        if (Big::compare($this->value, $other->value) < 0) {
            throw new Negative('till: the result is less than nothing');
        }

        return $this->result(Big::subtract($this->value, $other->value));
    }

    /** -1, 0 or 1. */
    public function compare(self $other): int
    {
        $this->both($other);

        return Big::compare($this->value, $other->value);
    }

    /** Multiplies by a decimal, as "1.5". The result is exact, or an error. */
    public function times(mixed $factor): self
    {
        $this->check();
        $factor = self::text($factor);
        if (!Json::isDecimal($factor) || strlen($factor) > self::MAX_DIGITS) {
            throw new BadAmount('till: a factor is a decimal, as "1.5"');
        }
        [$whole, $fraction] = explode('.', ltrim($factor, '-') . '.');
        $product = Big::multiply($this->value, ltrim($whole . $fraction, '0') ?: '0');
        $places = strlen($fraction);
        $padded = str_pad($product, $places + 1, '0', STR_PAD_LEFT);
        if ($places > 0 && trim(substr($padded, -$places), '0') !== '') {
            throw new NotExact('till: the result is not whole minor units');
        }
        $units = $places > 0 ? substr($padded, 0, -$places) : $padded;
        if ($factor[0] === '-' && $units !== '0') {
            throw new Negative('till: the result is less than nothing');
        }

        return $this->result($units);
    }

    /** @return self[] parts that add up; the first ones have what is left over */
    public function split(int $parts): array
    {
        $this->check();
        if ($parts < 1 || $parts > self::MAX_PARTS) {
            throw new BadParts('till: a split has 1 to ' . self::MAX_PARTS . ' parts');
        }
        [$each, $rest] = Big::divide($this->value, $parts);
        $out = [];
        for ($i = 0; $i < $parts; $i++) {
            $out[] = new self($i < $rest ? Big::add($each, '1') : $each, $this->currency);
        }

        return $out;
    }

    /** The amount in units of the currency: "50.00". */
    public function toMajor(): string
    {
        $this->check();
        $places = Currencies::DECIMALS[$this->currency] ?? throw new BadCurrency('till: no currency that is known here');
        if ($places === 0) {
            return $this->value;
        }
        $text = str_pad($this->value, $places + 1, '0', STR_PAD_LEFT);

        return substr($text, 0, -$places) . '.' . substr($text, -$places);
    }

    /** The amount for people: "5 000 XAF" in "fr", with the narrow spaces of French, else "XAF 5,000". */
    public function format(string $language): string
    {
        [$whole, $fraction] = explode('.', $this->toMajor() . '.');
        $french = $language === 'fr' || str_starts_with($language, 'fr-');
        $groups = strrev(implode(',', str_split(strrev($whole), 3)));
        $text = str_replace(',', $french ? "\u{202f}" : ',', $groups);
        if ($fraction !== '') {
            $text .= ($french ? ',' : '.') . $fraction;
        }

        return $french ? $text . "\u{a0}" . $this->currency : $this->currency . "\u{a0}" . $text;
    }

    /** The amount for logs, as "50.00 KES"; in minor units if the currency is not known. See format for people. */
    public function __toString(): string
    {
        try {
            return $this->toMajor() . ' ' . $this->currency;
        } catch (MoneyError) {
            return $this->value . ' minor units of ' . $this->currency;
        }
    }

    /** @return array{value: string, currency: string} the amount as the service reads it */
    public function jsonSerialize(): array
    {
        return ['value' => $this->value, 'currency' => $this->currency];
    }
}
