<?php

declare(strict_types=1);

namespace Till;

/** Lists: by page, and all of them by time. */
final class Page
{
    private const MAX = 200; // the most that one page holds

    /** @return array<string, string> a query of what is not empty */
    public static function query(array $values): array
    {
        $out = [];
        foreach ($values as $name => $value) {
            if ($value instanceof \DateTimeInterface) {
                $value = \DateTimeImmutable::createFromInterface($value)->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d\TH:i:s.u\Z');
            }
            if ($value !== null && $value !== '') {
                $out[$name] = (string) $value;
            }
        }

        return $out;
    }

    /**
     * Goes through a list by time, not by offset: the next page begins at the last moment that was seen, and drops what was
     * given of that moment. Records that change or arrive meanwhile neither repeat nor hide others.
     *
     * @param callable(array<string, string>): object $fetch
     */
    public static function all(array $query, callable $fetch): \Generator
    {
        $bound = ($query['order'] ?? '') === 'asc' ? 'from_date' : 'to_date';
        $given = []; // ids at the last moment
        $last = null;
        $offset = 0;
        $query['limit'] = (string) self::MAX;
        while (true) {
            $query['offset'] = (string) $offset;
            $items = $fetch($query)->items ?? [];
            [$fresh, $start] = [0, $last];
            foreach ($items as $item) {
                if ($item->created_at === $last && isset($given[$item->id])) {
                    continue;
                }
                if ($item->created_at !== $last) {
                    $last = $item->created_at;
                    $given = [];
                }
                $given[$item->id] = true;
                $fresh++;
                yield $item;
            }
            if (count($items) < self::MAX) {
                return;
            }
            if ($last !== $start) {
                $offset = 0;
                $query[$bound] = (string) $last;
            } elseif ($fresh > 0 || $offset === 0) {
                $offset += count($items); // more than a page at one moment
            } else {
                throw new NoProgress('till: the list does not go on');
            }
        }
    }
}
