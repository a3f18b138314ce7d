<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Support\Facades\DB;
use Till\Store\LaravelStore;

/** The column that tables of the first release lack. It stays when this is undone, and hurts nobody. */
return new class extends Migration {
    public function up(): void
    {
        (new LaravelStore(DB::connection(config('till.connection'))))->install();
    }

    public function down(): void
    {
    }
};
