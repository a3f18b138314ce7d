package api

import (
	"net/http"

	"till"
)

// Route is one operation of the API.
type Route struct {
	Method string     // the HTTP verb; GET answers HEAD too
	Path   string     // relative to /v1, as in openapi.yaml
	Scope  till.Scope // the scope that the key needs; "": none

	Scopes   []till.Scope // the key needs one of them, which also decides what it is shown
	Open     bool         // needs no key
	Fresh    bool         // the key is read from the database, not from the cache
	Self     bool         // a key may use it on itself without the scope
	TestOnly bool         // live clients get 404
	Body     bodyRule     // what is done about a body
	Stores   bool         // each call stores something for ever; payments and payouts check the quota themselves, after a replay
	AnyQuery bool         // query parameters are not checked
	Query    []string     // the query parameters that it accepts

	handle func(c *exchange) error
}

// bodyRule says whether a request has a body.
type bodyRule int

const (
	noBody       bodyRule = iota // a body is not read
	optionalBody                 // an empty one equals {}
	requiredBody                 // an empty one is rejected
)

// Routes lists all operations of the API. openapi.yaml lists the same; a test compares
// them.
var Routes = []Route{
	{Method: http.MethodPost, Path: "/payments", Scope: till.PaymentsWrite, Body: requiredBody, handle: (*exchange).createPayment},
	{Method: http.MethodGet, Path: "/payments", Scope: till.PaymentsRead, Query: paymentQuery, handle: (*exchange).listPayments},
	{Method: http.MethodGet, Path: "/payments/{payment_id}", Scope: till.PaymentsRead, Query: waitQuery, handle: (*exchange).getPayment},
	{Method: http.MethodGet, Path: "/payments/{payment_id}/attempts", Scope: till.PaymentsRead, handle: (*exchange).listAttempts},
	{Method: http.MethodGet, Path: "/payments/{payment_id}/events", Scope: till.PaymentsRead, handle: (*exchange).listPaymentEvents},
	{Method: http.MethodGet, Path: "/payments/{payment_id}/refunds", Scope: till.PaymentsRead, handle: onRefunds(refundHandlers.listPaymentRefunds)},

	{Method: http.MethodPost, Path: "/refunds", Scope: till.RefundsWrite, Fresh: true, Body: requiredBody, handle: onRefunds(refundHandlers.createRefund)},
	{Method: http.MethodGet, Path: "/refunds", Scope: till.PaymentsRead, Query: refundQuery, handle: onRefunds(refundHandlers.listRefunds)},
	{Method: http.MethodGet, Path: "/refunds/{refund_id}", Scope: till.PaymentsRead, Query: waitQuery, handle: onRefunds(refundHandlers.getRefund)},
	{Method: http.MethodPost, Path: "/refunds/{refund_id}/cancel", Scope: till.RefundsWrite, Fresh: true, Body: optionalBody, handle: onRefunds(refundHandlers.cancelRefund)},
	{Method: http.MethodGet, Path: "/refunds/{refund_id}/attempts", Scope: till.PaymentsRead, handle: onRefunds(refundHandlers.listRefundAttempts)},
	{Method: http.MethodGet, Path: "/refunds/{refund_id}/events", Scope: till.PaymentsRead, handle: onRefunds(refundHandlers.listRefundEvents)},

	{Method: http.MethodPost, Path: "/checkouts", Scope: till.PaymentsWrite, Body: requiredBody, handle: onCheckouts(checkoutHandlers.createCheckout)},
	{Method: http.MethodGet, Path: "/checkouts", Scope: till.PaymentsRead, Query: checkoutQuery, handle: onCheckouts(checkoutHandlers.listCheckouts)},
	{Method: http.MethodGet, Path: "/checkouts/{checkout_id}", Scope: till.PaymentsRead, Query: waitQuery, handle: onCheckouts(checkoutHandlers.getCheckout)},
	{Method: http.MethodPost, Path: "/checkouts/{checkout_id}/cancel", Scope: till.PaymentsWrite, Body: optionalBody, handle: onCheckouts(checkoutHandlers.cancelCheckout)},

	{Method: http.MethodPost, Path: "/links", Scope: till.PaymentsWrite, Body: requiredBody, handle: onLinks(linkHandlers.createLink)},
	{Method: http.MethodGet, Path: "/links", Scope: till.PaymentsRead, Query: linkQuery, handle: onLinks(linkHandlers.listLinks)},
	{Method: http.MethodGet, Path: "/links/{link_id}", Scope: till.PaymentsRead, handle: onLinks(linkHandlers.getLink)},
	{Method: http.MethodPatch, Path: "/links/{link_id}", Scope: till.PaymentsWrite, Body: optionalBody, handle: onLinks(linkHandlers.changeLink)},

	{Method: http.MethodPost, Path: "/payouts", Scope: till.PayoutsWrite, Fresh: true, Body: requiredBody, handle: (*exchange).createPayout},
	{Method: http.MethodGet, Path: "/payouts", Scope: till.PayoutsRead, Fresh: true, Query: paymentQuery, handle: (*exchange).listPayouts},
	{Method: http.MethodGet, Path: "/payouts/{payout_id}", Scope: till.PayoutsRead, Fresh: true, Query: waitQuery, handle: (*exchange).getPayout},
	{Method: http.MethodPost, Path: "/payouts/{payout_id}/cancel", Scope: till.PayoutsWrite, Fresh: true, Body: optionalBody, handle: (*exchange).cancelPayout},
	{Method: http.MethodGet, Path: "/payouts/{payout_id}/attempts", Scope: till.PayoutsRead, Fresh: true, handle: (*exchange).listPayoutAttempts},
	{Method: http.MethodGet, Path: "/payouts/{payout_id}/events", Scope: till.PayoutsRead, Fresh: true, handle: (*exchange).listPayoutEvents},

	{Method: http.MethodGet, Path: "/events", Scopes: till.EventScopes, Query: eventQuery, handle: (*exchange).listEvents},
	{Method: http.MethodGet, Path: "/events/{event_id}", Scopes: till.EventScopes, handle: (*exchange).getEvent},

	{Method: http.MethodPost, Path: "/events/{event_id}/redeliver", Scope: till.WebhooksManage, Body: optionalBody, Stores: true, handle: onHooks(hookHandlers.redeliverEvent)},

	{Method: http.MethodPost, Path: "/webhook-endpoints", Scope: till.WebhooksManage, Body: requiredBody, Stores: true, handle: onHooks(hookHandlers.createEndpoint)},
	{Method: http.MethodGet, Path: "/webhook-endpoints", Scope: till.WebhooksManage, handle: onHooks(hookHandlers.listEndpoints)},
	{Method: http.MethodGet, Path: "/webhook-endpoints/{endpoint_id}", Scope: till.WebhooksManage, handle: onHooks(hookHandlers.getEndpoint)},
	{Method: http.MethodPatch, Path: "/webhook-endpoints/{endpoint_id}", Scope: till.WebhooksManage, Body: optionalBody, Stores: true, handle: onHooks(hookHandlers.patchEndpoint)},
	{Method: http.MethodDelete, Path: "/webhook-endpoints/{endpoint_id}", Scope: till.WebhooksManage, handle: onHooks(hookHandlers.deleteEndpoint)},
	{Method: http.MethodPost, Path: "/webhook-endpoints/{endpoint_id}/rotate-secret", Scope: till.WebhooksManage, Body: optionalBody, Stores: true, handle: onHooks(hookHandlers.rotateSecret)},
	{Method: http.MethodPost, Path: "/webhook-endpoints/{endpoint_id}/test", Scope: till.WebhooksManage, Stores: true, handle: onHooks(hookHandlers.testEndpoint)},
	{Method: http.MethodGet, Path: "/webhook-endpoints/{endpoint_id}/deliveries", Scope: till.WebhooksManage, Query: deliveryQuery, handle: onHooks(hookHandlers.listDeliveries)},
	{Method: http.MethodPost, Path: "/webhook-endpoints/{endpoint_id}/replay", Scope: till.WebhooksManage, Body: requiredBody, Stores: true, handle: onHooks(hookHandlers.replayEvents)},

	{Method: http.MethodGet, Path: "/payment-methods", handle: (*exchange).listMethods},
	{Method: http.MethodPost, Path: "/payment-methods/predict", Body: requiredBody, handle: (*exchange).predictMethod},
	{Method: http.MethodGet, Path: "/wallets", Scope: till.WalletsRead, handle: (*exchange).listWallets},
	{Method: http.MethodGet, Path: "/transactions", Scope: till.WalletsRead, Query: transactionQuery, handle: (*exchange).listTransactions},

	{Method: http.MethodGet, Path: "/me", handle: onKeys(keyHandlers.getMe)},
	{Method: http.MethodGet, Path: "/api-keys", Scope: till.KeysManage, Fresh: true, handle: onKeys(keyHandlers.listKeys)},
	{Method: http.MethodPost, Path: "/api-keys", Scope: till.KeysManage, Fresh: true, Body: requiredBody, Stores: true, handle: onKeys(keyHandlers.createKey)},
	{Method: http.MethodPost, Path: "/api-keys/{key_id}/rotate", Scope: till.KeysManage, Fresh: true, Self: true, Body: optionalBody, Stores: true, handle: onKeys(keyHandlers.rotateKey)},
	{Method: http.MethodDelete, Path: "/api-keys/{key_id}", Scope: till.KeysManage, Fresh: true, Self: true, Query: revokeQuery, handle: onKeys(keyHandlers.revokeKey)},

	{Method: http.MethodGet, Path: "/sandbox/prompts", Scope: till.PaymentsWrite, TestOnly: true, handle: (*exchange).listPrompts},
	{Method: http.MethodPost, Path: "/sandbox/prompts/{payment_id}", Scope: till.PaymentsWrite, TestOnly: true, Body: optionalBody, handle: (*exchange).decidePrompt},
	{Method: http.MethodGet, Path: "/sandbox/stories", TestOnly: true, handle: (*exchange).listStories},
	{Method: http.MethodPost, Path: "/sandbox/webhook-endpoints/{endpoint_id}/disable", Scope: till.WebhooksManage, TestOnly: true, Stores: true, handle: onHooks(hookHandlers.disableSandboxEndpoint)},

	{Method: http.MethodPost, Path: "/callbacks/{connection}/{token}", Open: true, AnyQuery: true, handle: onCallbacks(callbackHandlers.receiveCallback)},
	{Method: http.MethodPut, Path: "/callbacks/{connection}/{token}", Open: true, AnyQuery: true, handle: onCallbacks(callbackHandlers.receiveCallback)},
	{Method: http.MethodGet, Path: "/openapi.yaml", Open: true, handle: (*exchange).getOpenAPI},
	{Method: http.MethodGet, Path: "/openapi.json", Open: true, handle: (*exchange).getOpenAPIJSON},
}

// hookHandlers answer about webhook endpoints and what is delivered to them.
type hookHandlers struct{ *exchange }

func onHooks(handle func(hookHandlers) error) func(*exchange) error {
	return func(c *exchange) error { return handle(hookHandlers{c}) }
}

// keyHandlers answer about keys.
type keyHandlers struct{ *exchange }

func onKeys(handle func(keyHandlers) error) func(*exchange) error {
	return func(c *exchange) error { return handle(keyHandlers{c}) }
}

// callbackHandlers answer operators.
type callbackHandlers struct{ *exchange }

func onCallbacks(handle func(callbackHandlers) error) func(*exchange) error {
	return func(c *exchange) error { return handle(callbackHandlers{c}) }
}
