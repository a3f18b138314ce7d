<?php

declare(strict_types=1);

namespace Till\Laravel;

use Illuminate\Contracts\Config\Repository;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Till\Request as Delivery;
use Till\Teller;
use Till\Webhook;

/**
 * Receives webhooks: Route::post('/till', Till\Laravel\WebhookController::class), in routes/api.php, or in routes/web.php with
 * its path in $except of VerifyCsrfToken: the signature says who posts.
 */
final class WebhookController
{
    public function __invoke(Request $request, Teller $teller, Repository $config, ExceptionHandler $handler): Response
    {
        if ((int) $request->headers->get('content-length') > Webhook::MAX_DELIVERY) {
            return new Response('too_large', 400, ['Content-Type' => 'text/plain; charset=utf-8']);
        }
        $secrets = array_filter(array_map('trim', explode(',', (string) $config->get('till.webhook_secret'))), static fn (string $s) => $s !== '');
        $reply = $teller->receive($secrets, new Delivery($request->method(), $request->headers->all(), (string) $request->getContent()));
        if ($reply->status === 500 && $reply->error !== null) {
            $handler->report($reply->error);
        }

        return new Response($reply->body, $reply->status, $reply->headers);
    }
}
