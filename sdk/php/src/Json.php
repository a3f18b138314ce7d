<?php

declare(strict_types=1);

namespace Till;

/** JSON without floats: what is read keeps its digits, what is written is exact. */
final class Json
{
    private const MAX_DEPTH = 64;
    private const MARK = "\0#"; // before the digits of a number, while PHP's own parser is at work

    public static function isDecimal(mixed $text): bool
    {
        return is_string($text) && preg_match('/^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/D', $text) === 1;
    }

    /** Reads JSON; objects are stdClass, numbers that a PHP integer does not hold are Digits. \JsonException if it is none. */
    public static function parse(string $text): mixed
    {
        $marked = false;
        $changed = preg_replace_callback('/"(?:[^"\\\\]++|\\\\.)*+"|-?[0-9][0-9.eE+-]*+/s', static function (array $m) use (&$marked): string {
            $token = $m[0];
            if ($token[0] === '"') {
                // A text of somebody's that looks like a mark is marked itself.
                if (str_starts_with($token, '"\u0000#') || str_starts_with($token, '"\u0000"')) {
                    $marked = true;

                    return '"\u0000"' === $token ? $token : '"\u0000#\"' . substr($token, 8);
                }

                return $token;
            }
            if (strlen($token) <= 18 && strpbrk($token, '.eE') === false) {
                return $token;
            }
            if (preg_match('/^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/D', $token) !== 1) {
                return $token; // no number: the parser says so
            }
            $marked = true;

            return '"\u0000#' . $token . '"';
        }, $text);
        if ($changed === null) {
            throw new \JsonException('till: no text');
        }
        $value = json_decode($changed, false, self::MAX_DEPTH * 8, JSON_THROW_ON_ERROR);

        return $marked ? self::unmark($value) : $value;
    }

    private static function unmark(mixed $value): mixed
    {
        if (is_string($value) && str_starts_with($value, self::MARK)) {
            return ($value[2] ?? '') === '"' ? self::MARK . substr($value, 3) : new Digits(substr($value, 2));
        }
        if (is_array($value)) {
            return array_map(self::unmark(...), $value);
        }
        if ($value instanceof \stdClass) {
            foreach (get_object_vars($value) as $name => $member) {
                $value->{$name} = self::unmark($member);
            }
        }

        return $value;
    }

    /** Writes JSON without spaces. \TypeError for what JSON does not have. */
    public static function render(mixed $value, int $depth = 0): string
    {
        if ($depth > self::MAX_DEPTH) {
            throw new \TypeError('till: a value is nested too deeply');
        }
        if ($value instanceof Digits) {
            return $value->text;
        }
        if ($value === null || is_bool($value) || is_int($value)) {
            return json_encode($value);
        }
        if (is_float($value) && is_finite($value)) {
            return json_encode($value, JSON_PRESERVE_ZERO_FRACTION); // in metadata; amounts and quantities refuse floats before
        }
        if (is_string($value)) {
            $text = json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS);

            return $text !== false ? $text : throw new \TypeError('till: a text is not UTF-8');
        }
        if (is_array($value) && array_is_list($value)) {
            return '[' . implode(',', array_map(static fn ($v) => self::render($v, $depth + 1), $value)) . ']';
        }
        if (is_array($value) || $value instanceof \stdClass) {
            $out = [];
            foreach ((array) $value as $name => $member) {
                $out[] = self::render((string) $name) . ':' . self::render($member, $depth + 1);
            }

            return '{' . implode(',', $out) . '}';
        }
        throw new \TypeError('till: ' . get_debug_type($value) . ' is no JSON');
    }

    /** Compares two texts by what they say, numbers by their digits. */
    public static function same(string $a, string $b): bool
    {
        return self::render(self::ordered(self::parse($a))) === self::render(self::ordered(self::parse($b)));
    }

    private static function ordered(mixed $value): mixed
    {
        if (is_array($value)) {
            return array_map(self::ordered(...), $value);
        }
        if ($value instanceof \stdClass) {
            $members = (array) $value;
            ksort($members, SORT_STRING);

            return (object) array_map(self::ordered(...), $members);
        }

        return $value;
    }
}
