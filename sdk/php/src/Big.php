<?php

declare(strict_types=1);

namespace Till;

/** Whole numbers of any size as texts of digits, without an extension. None is negative, none begins with a needless 0. */
final class Big
{
    private static function trim(string $digits): string
    {
        $digits = ltrim($digits, '0');

        return $digits === '' ? '0' : $digits;
    }

    public static function compare(string $a, string $b): int
    {
        return strlen($a) <=> strlen($b) ?: strcmp($a, $b) <=> 0;
    }

    public static function add(string $a, string $b): string
    {
        $length = max(strlen($a), strlen($b));
        $a = str_pad($a, $length, '0', STR_PAD_LEFT);
        $b = str_pad($b, $length, '0', STR_PAD_LEFT);
        $out = '';
        $carry = 0;
        for ($i = $length - 1; $i >= 0; $i--) {
            $sum = (int) $a[$i] + (int) $b[$i] + $carry;
            $out = ($sum % 10) . $out;
            $carry = intdiv($sum, 10);
        }

        return self::trim($carry . $out);
    }

    /** The difference of a and b, where a is not less. */
    public static function subtract(string $a, string $b): string
    {
        $b = str_pad($b, strlen($a), '0', STR_PAD_LEFT);
        $out = '';
        $borrow = 0;
        for ($i = strlen($a) - 1; $i >= 0; $i--) {
            $rest = (int) $a[$i] - (int) $b[$i] - $borrow;
            $borrow = $rest < 0 ? 1 : 0;
            $out = ($rest + 10 * $borrow) . $out;
        }

        return self::trim($out);
    }

    public static function multiply(string $a, string $b): string
    {
        $sums = array_fill(0, strlen($a) + strlen($b), 0);
        for ($i = strlen($a) - 1; $i >= 0; $i--) {
            for ($j = strlen($b) - 1; $j >= 0; $j--) {
                $sum = (int) $a[$i] * (int) $b[$j] + $sums[$i + $j + 1];
                $sums[$i + $j + 1] = $sum % 10;
                $sums[$i + $j] += intdiv($sum, 10);
            }
        }

        return self::trim(implode('', $sums));
    }

    /** @return array{string, int} the quotient and the rest of a division by a small number */
    public static function divide(string $a, int $by): array
    {
        $out = '';
        $rest = 0;
        foreach (str_split($a) as $digit) {
            $rest = $rest * 10 + (int) $digit;
            $out .= intdiv($rest, $by);
            $rest %= $by;
        }

        return [self::trim($out), $rest];
    }
}
