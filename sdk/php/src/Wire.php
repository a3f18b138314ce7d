<?php

declare(strict_types=1);

namespace Till;

/** A number by its own digits, which are written as they are. */
final class Digits
{
    public function __construct(public readonly string $text)
    {
    }

    public function __toString(): string
    {
        return $this->text;
    }
}

/** How members are read from JSON and written to it. */
final class Wire
{
    public static function read(mixed $kind, mixed $value): mixed
    {
        if ($value === null || $kind === 'any') {
            return $value;
        }
        if (is_array($kind)) {
            return match ($kind[0]) {
                'one' => $kind[1]::fromJson($value),
                'list' => array_map(static fn ($v) => self::read($kind[1], $v), is_array($value) ? $value : self::wrong('a list')),
                default => array_map(static fn ($v) => self::read($kind[1], $v), $value instanceof \stdClass ? (array) $value : self::wrong('an object')),
            };
        }
        $good = match ($kind) {
            'text' => is_string($value),
            'integer' => is_int($value),
            'boolean' => is_bool($value),
            'decimal' => is_int($value) || $value instanceof Digits,
            default => $value instanceof \stdClass && is_string($value->value ?? null) && is_string($value->currency ?? null),
        };
        if (!$good) {
            self::wrong($kind);
        }

        return match ($kind) {
            'decimal' => (string) $value,
            'money' => Money::minor($value->value, $value->currency),
            default => $value,
        };
    }

    public static function write(mixed $kind, mixed $value): mixed
    {
        if ($value === null || $kind === 'any') {
            return $value;
        }
        if (is_array($kind)) {
            return match ($kind[0]) {
                'one' => $value instanceof $kind[1] ? $value->toJson() : self::wrong($kind[1]),
                'list' => array_map(static fn ($v) => self::write($kind[1], $v), array_values($value)),
                default => (object) array_map(static fn ($v) => self::write($kind[1], $v), $value),
            };
        }

        return match ($kind) {
            'decimal' => Json::isDecimal($value) ? new Digits($value) : self::wrong('a text of digits with at most one point, as "1.5", never a float'),
            'money' => $value instanceof Money ? (object) ['value' => $value->value, 'currency' => $value->currency] : self::wrong('Money'),
            'text' => is_string($value) ? $value : self::wrong('a text'),
            'integer' => is_int($value) ? $value : self::wrong('an integer'),
            default => is_bool($value) ? $value : self::wrong('true or false'),
        };
    }

    private static function wrong(string $word): never
    {
        throw new \TypeError('till: it should be ' . $word);
    }
}

/** What the service sends. A member that it did not send is null; raw is the object as it came. */
abstract class Answer
{
    public const MEMBERS = [];

    public \stdClass $raw;

    final public static function fromJson(mixed $value): static
    {
        if (!$value instanceof \stdClass) {
            throw new \TypeError('till: it should be an object');
        }
        $self = new static();
        $self->raw = $value;
        foreach (static::MEMBERS as $name => [$kind]) {
            $self->{$name} = Wire::read($kind, $value->{$name} ?? null);
        }

        return $self;
    }

    /** Writes the object, with the members that were not known. */
    final public function toJson(): \stdClass
    {
        $out = new \stdClass();
        foreach (static::MEMBERS as $name => [$kind, $always]) {
            if ($this->{$name} !== null || $always) {
                $out->{$name} = Wire::write($kind, $this->{$name});
            }
        }
        foreach (get_object_vars($this->raw) as $name => $member) {
            if (!array_key_exists($name, static::MEMBERS)) {
                $out->{$name} = $member;
            }
        }

        return $out;
    }
}

/** What a call sends. */
abstract class Body
{
    public const MEMBERS = [];

    /** Writes the object; what is null is left out. */
    final public function toJson(): \stdClass
    {
        $out = new \stdClass();
        foreach (static::MEMBERS as $name => [$kind, $always]) {
            if ($this->{$name} === null && !$always) {
                continue;
            }
            try {
                $out->{$name} = Wire::write($kind, $this->{$name});
            } catch (\TypeError $e) {
                throw new \TypeError($name . ': ' . $e->getMessage());
            }
        }

        return $out;
    }
}
