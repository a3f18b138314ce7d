package api

import (
	"net/http"

	"till"
)

// Route is one operation of the API.
type Route struct {
	Method string     // the HTTP verb; GET answers HEAD too
	Path   string     // relative to /v1, as in openapi.yaml
	Scope  till.Scope // what the key must be allowed; "": any key will do

	Scopes   []till.Scope // the key must be allowed one of them; what it is shown depends on which
	Open     bool         // needs no key
	Fresh    bool         // the key is read from the database, not from the cache
	Self     bool         // a key may do this to itself without the scope
	TestOnly bool         // live clients are told that there is no such path
	Body     bodyRule     // what is done about a body
	Stores   bool         // each call leaves something for ever; payments and payouts look for themselves, behind their keys
	AnyQuery bool         // query parameters are not ours to judge
	Query    []string     // the query parameters it knows

	handle func(c *call) error
}

// bodyRule says whether a call has a body.
type bodyRule int

const (
	noBody       bodyRule = iota // one that is sent is not read
	optionalBody                 // an empty one equals {}
	requiredBody                 // an empty one is refused
)

// Routes is every operation of the API. openapi.yaml lists the same; a test
// compares them.
var Routes = []Route{
	{Method: http.MethodPost, Path: "/payments", Scope: till.PaymentsWrite, Body: requiredBody, handle: (*call).createPayment},
	{Method: http.MethodGet, Path: "/payments", Scope: till.PaymentsRead, Query: paymentQuery, handle: (*call).listPayments},
	{Method: http.MethodGet, Path: "/payments/{payment_id}", Scope: till.PaymentsRead, handle: (*call).getPayment},
	{Method: http.MethodGet, Path: "/payments/{payment_id}/attempts", Scope: till.PaymentsRead, handle: (*call).listAttempts},
	{Method: http.MethodGet, Path: "/payments/{payment_id}/events", Scope: till.PaymentsRead, handle: (*call).listPaymentEvents},

	{Method: http.MethodPost, Path: "/payouts", Scope: till.PayoutsWrite, Fresh: true, Body: requiredBody, handle: (*call).createPayout},
	{Method: http.MethodGet, Path: "/payouts", Scope: till.PayoutsRead, Fresh: true, Query: paymentQuery, handle: (*call).listPayouts},
	{Method: http.MethodGet, Path: "/payouts/{payout_id}", Scope: till.PayoutsRead, Fresh: true, handle: (*call).getPayout},
	{Method: http.MethodPost, Path: "/payouts/{payout_id}/cancel", Scope: till.PayoutsWrite, Fresh: true, Body: optionalBody, handle: (*call).cancelPayout},
	{Method: http.MethodGet, Path: "/payouts/{payout_id}/attempts", Scope: till.PayoutsRead, Fresh: true, handle: (*call).listPayoutAttempts},
	{Method: http.MethodGet, Path: "/payouts/{payout_id}/events", Scope: till.PayoutsRead, Fresh: true, handle: (*call).listPayoutEvents},

	{Method: http.MethodGet, Path: "/events", Scopes: till.EventScopes, Query: eventQuery, handle: (*call).listEvents},
	{Method: http.MethodGet, Path: "/events/{event_id}", Scopes: till.EventScopes, handle: (*call).getEvent},

	{Method: http.MethodPost, Path: "/events/{event_id}/redeliver", Scope: till.WebhooksManage, Body: optionalBody, Stores: true, handle: (*call).redeliverEvent},

	{Method: http.MethodPost, Path: "/webhook-endpoints", Scope: till.WebhooksManage, Body: requiredBody, Stores: true, handle: (*call).createEndpoint},
	{Method: http.MethodGet, Path: "/webhook-endpoints", Scope: till.WebhooksManage, handle: (*call).listEndpoints},
	{Method: http.MethodGet, Path: "/webhook-endpoints/{endpoint_id}", Scope: till.WebhooksManage, handle: (*call).getEndpoint},
	{Method: http.MethodPatch, Path: "/webhook-endpoints/{endpoint_id}", Scope: till.WebhooksManage, Body: optionalBody, Stores: true, handle: (*call).patchEndpoint},
	{Method: http.MethodDelete, Path: "/webhook-endpoints/{endpoint_id}", Scope: till.WebhooksManage, handle: (*call).deleteEndpoint},
	{Method: http.MethodPost, Path: "/webhook-endpoints/{endpoint_id}/rotate-secret", Scope: till.WebhooksManage, Body: optionalBody, Stores: true, handle: (*call).rotateSecret},
	{Method: http.MethodPost, Path: "/webhook-endpoints/{endpoint_id}/test", Scope: till.WebhooksManage, Stores: true, handle: (*call).testEndpoint},
	{Method: http.MethodGet, Path: "/webhook-endpoints/{endpoint_id}/deliveries", Scope: till.WebhooksManage, Query: deliveryQuery, handle: (*call).listDeliveries},
	{Method: http.MethodPost, Path: "/webhook-endpoints/{endpoint_id}/replay", Scope: till.WebhooksManage, Body: requiredBody, Stores: true, handle: (*call).replayEvents},

	{Method: http.MethodGet, Path: "/payment-methods", handle: (*call).listMethods},
	{Method: http.MethodGet, Path: "/wallets", Scope: till.WalletsRead, handle: (*call).listWallets},
	{Method: http.MethodGet, Path: "/transactions", Scope: till.WalletsRead, Query: transactionQuery, handle: (*call).listTransactions},

	{Method: http.MethodGet, Path: "/api-keys", Scope: till.KeysManage, Fresh: true, handle: (*call).listKeys},
	{Method: http.MethodPost, Path: "/api-keys", Scope: till.KeysManage, Fresh: true, Body: requiredBody, Stores: true, handle: (*call).createKey},
	{Method: http.MethodPost, Path: "/api-keys/{key_id}/rotate", Scope: till.KeysManage, Fresh: true, Self: true, Body: optionalBody, Stores: true, handle: (*call).rotateKey},
	{Method: http.MethodDelete, Path: "/api-keys/{key_id}", Scope: till.KeysManage, Fresh: true, Self: true, Query: revokeQuery, handle: (*call).revokeKey},

	{Method: http.MethodGet, Path: "/sandbox/prompts", Scope: till.PaymentsWrite, TestOnly: true, handle: (*call).listPrompts},
	{Method: http.MethodPost, Path: "/sandbox/prompts/{payment_id}", Scope: till.PaymentsWrite, TestOnly: true, Body: optionalBody, handle: (*call).decidePrompt},

	{Method: http.MethodPost, Path: "/callbacks/{connection}/{token}", Open: true, AnyQuery: true, handle: (*call).receiveCallback},
	{Method: http.MethodPut, Path: "/callbacks/{connection}/{token}", Open: true, AnyQuery: true, handle: (*call).receiveCallback},
	{Method: http.MethodGet, Path: "/openapi.yaml", Open: true, handle: (*call).getOpenAPI},
}
