<?php

declare(strict_types=1);

namespace Till;

/** Phone numbers as people type them. */
final class Phone
{
    private const MAX_TEXT = 64;

    /**
     * Reads what a person typed, by the rule of a country, as $method->countries[0]->phone. Returns the digits to show and
     * to confirm, calling code first: "+242 06 123 45 67" is "242061234567". A number without its calling code gets it. A
     * trunk zero goes where the country's numbers have none, and stays in Congo, where it belongs to the number.
     */
    public static function read(string $text, PaymentMethodCountryPhone $rule): string
    {
        if (strlen($text) > self::MAX_TEXT) {
            throw new PhoneError('too_long');
        }
        $number = str_replace([' ', "\u{a0}", "\u{202f}", '-', '.', '/', '(', ')'], '', $text);
        $international = true;
        if (str_starts_with($number, '+')) {
            $number = substr($number, 1);
        } elseif (str_starts_with($number, '00')) {
            $number = substr($number, 2);
        } else {
            $international = false;
        }
        if ($number === '') {
            throw new PhoneError('empty');
        }
        if (preg_match('/^[0-9]+$/D', $number) !== 1) {
            throw new PhoneError('not_digits');
        }
        $code = (string) $rule->calling_code;
        $length = (int) $rule->length;
        if (str_starts_with($number, $code) && ($international || strlen($number) >= $length)) {
            // It is whole, or wrong in its length.
        } elseif ($international) {
            throw new PhoneError('other_country');
        } elseif ($number[0] === '0' && !str_starts_with((string) $rule->example, $code . '0')) {
            $number = $code . substr($number, 1); // a trunk zero, of the dialling at home
        } elseif (strlen($number) <= $length - strlen($code)) {
            $number = $code . $number;
        }
        if (strlen($number) !== $length) {
            throw new PhoneError(strlen($number) < $length ? 'too_short' : 'too_long');
        }
        if (!str_starts_with($number, $code)) {
            throw new PhoneError('other_country');
        }

        return $number;
    }
}
