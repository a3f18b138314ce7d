<?php

declare(strict_types=1);

// Loads the SDK without Composer: require 'sdk/php/src/autoload.php'.

spl_autoload_register(static function (string $class): void {
    if (!str_starts_with($class, 'Till\\')) {
        return;
    }
    $file = __DIR__ . '/' . str_replace('\\', '/', substr($class, 5)) . '.php';
    if (is_file($file)) {
        require_once $file;
        return;
    }
    // Files that hold several classes.
    foreach (['Errors.php', 'Wire.php', 'Types.php', 'Rows.php'] as $several) {
        require_once __DIR__ . '/' . $several;
    }
});
