<?php

// php artisan vendor:publish --tag=till copies this to config/till.php.

return [
    'base_url' => env('TILL_BASE_URL'),
    'api_key' => env('TILL_API_KEY'),
    // 'live' in production, 'test' elsewhere: keys of the other mode are refused.
    'expect' => env('TILL_EXPECT', ''),
    // While a secret is rotated, the new and the old one, with a comma between.
    'webhook_secret' => env('TILL_WEBHOOK_SECRET'),
    // A connection of config/database.php; null is the default one.
    'connection' => null,
    // Your class with __invoke(Till\Change $change): it runs inside a transaction, once for each change.
    'on_change' => null,
    // Whether it hears of payments, too, that this shop's tables do not know; and whether new tables begin at the start of the event log.
    'foreign' => false,
    'from_start' => false,
];
