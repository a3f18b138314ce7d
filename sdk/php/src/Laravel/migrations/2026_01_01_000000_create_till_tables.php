<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Schema;
use Till\Store\LaravelStore;

/** The three tables of a store, the same as in sdk/schema. */
return new class extends Migration {
    public function up(): void
    {
        (new LaravelStore(DB::connection(config('till.connection'))))->install();
    }

    public function down(): void
    {
        foreach (['till_outbox', 'till_subject', 'till_cursor'] as $table) {
            Schema::connection(config('till.connection'))->dropIfExists($table);
        }
    }
};
