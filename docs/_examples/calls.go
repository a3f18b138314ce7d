// Every call of the API by the SDK for Go. The reference shows the parts between
// the marks; TestEveryCallOfThePagesRuns runs the program.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"time"

	till "till/sdk/go"
)

func must(err error, _ ...any) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

// draw returns a UUID. A shop draws one per order and stores it with the order.
func draw() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func main() {
	ctx := context.Background()
	shop := os.Getenv("SHOP_URL")
	client, err := till.New(os.Getenv("TILL_BASE_URL"), till.KeyFromEnv("TILL_API_KEY"))
	must(err)
	var order struct{ Key, Payout string }
	order.Key, order.Payout = draw(), draw()

	// call: createPayment
	payment, err := client.Payments.Create(ctx, till.CreatePayment{
		Method: "mtn_momo", Country: till.Ptr("CG"), Amount: till.Minor("5000", "XAF"),
		Customer: till.CreatePaymentCustomer{Phone: "242061234567"}, Reference: till.Ptr("ORDER-1042"),
		IdempotencyKey: order.Key, // drawn and stored with the order before this call
	})
	// end
	must(err)
	for payment.Status != till.Success {
		time.Sleep(200 * time.Millisecond)
		// call: getPayment
		payment, err = client.Payments.Get(ctx, payment.ID)
		// end
		must(err)
	}
	// call: listPayments
	for p, err := range client.Payments.All(ctx, till.PaymentFilter{Status: till.Success}) {
		if err != nil {
			return
		}
		fmt.Println(p.ID, p.Amount.Value)
	}
	// end
	// call: listPaymentAttempts
	attempts, err := client.Payments.Attempts(ctx, payment.ID)
	// end
	must(err, attempts)
	// call: listPaymentEvents
	history, err := client.Payments.Events(ctx, payment.ID)
	// end
	must(err, history)

	// call: listPaymentMethods
	methods, err := client.PaymentMethods.List(ctx)
	// end
	must(err, methods)
	// call: listWallets
	wallets, err := client.Wallets.List(ctx)
	// end
	must(err, wallets)
	// call: listTransactions
	for t, err := range client.Transactions.All(ctx, till.TransactionFilter{Currency: "XAF"}) {
		if err != nil {
			return
		}
		fmt.Println(t.Sequence, t.Type, t.Amount.Value)
	}
	// end

	// call: createPayout
	payout, err := client.Payouts.Create(ctx, till.CreatePayout{
		Method: "mtn_momo", Country: till.Ptr("CG"), Amount: till.Minor("500", "XAF"),
		Recipient:      till.CreatePayoutRecipient{Phone: "242061230020"}, // the sandbox sends it after 5 s
		IdempotencyKey: order.Payout,
	})
	// end
	must(err)
	// call: getPayout
	payout, err = client.Payouts.Get(ctx, payout.ID)
	// end
	must(err)
	// call: cancelPayout
	payout, err = client.Payouts.Cancel(ctx, payout.ID)
	// end
	must(err)
	// call: listPayouts
	for p, err := range client.Payouts.All(ctx, till.PayoutFilter{Status: till.Cancelled}) {
		if err != nil {
			return
		}
		fmt.Println(p.ID, p.Amount.Value)
	}
	// end
	// call: listPayoutAttempts
	sends, err := client.Payouts.Attempts(ctx, payout.ID)
	// end
	must(err, sends)
	// call: listPayoutEvents
	changes, err := client.Payouts.Events(ctx, payout.ID)
	// end
	must(err, changes)

	// call: createWebhookEndpoint
	secret := till.NewSecret() // store it first; then this call may be repeated
	endpoint, err := client.Webhooks.Create(ctx, till.CreateWebhookEndpoint{URL: till.Ptr(shop + "/till"), Events: []string{"*"}, Secret: &secret})
	// end
	must(err)
	// call: listWebhookEndpoints
	endpoints, err := client.Webhooks.List(ctx)
	// end
	must(err, endpoints)
	// call: getWebhookEndpoint
	read, err := client.Webhooks.Get(ctx, endpoint.ID)
	// end
	must(err, read)
	// call: updateWebhookEndpoint
	changed, err := client.Webhooks.Update(ctx, endpoint.ID, till.UpdateWebhookEndpoint{Description: till.Ptr("the shop")})
	// end
	must(err, changed)
	// call: testWebhookEndpoint
	test, err := client.Webhooks.Test(ctx, endpoint.ID)
	// end
	must(err, test)
	// call: rotateWebhookSecret
	next := till.NewSecret()
	rotated, err := client.Webhooks.RotateSecret(ctx, endpoint.ID, till.RotateWebhookSecret{Secret: &next, OverlapSeconds: till.Ptr[int64](3600)})
	// end
	must(err, rotated)
	// call: replayEvents
	replayed, err := client.Webhooks.Replay(ctx, endpoint.ID, till.Replay{FromSequence: till.Ptr[int64](1)})
	// end
	must(err, replayed)

	// call: listEvents
	page, err := client.Events.Read(ctx, 0, 200, 30*time.Second) // after, limit, wait
	// end
	must(err)
	event := page.Items[0]
	// call: getEvent
	one, err := client.Events.Get(ctx, event.ID)
	// end
	must(err, one)
	// call: redeliverEvent
	redelivered, err := client.Events.Redeliver(ctx, event.ID, till.Redeliver{EndpointID: &endpoint.ID})
	// end
	must(err, redelivered)
	// call: listDeliveries
	deliveries, err := client.Webhooks.Deliveries(ctx, endpoint.ID, till.DeliveryStatusPending, 50, 0)
	// end
	must(err, deliveries)
	// call: disableSandboxEndpoint
	disabled, err := client.Sandbox.DisableEndpoint(ctx, endpoint.ID)
	// end
	must(err, disabled)
	// call: deleteWebhookEndpoint
	err = client.Webhooks.Delete(ctx, endpoint.ID)
	// end
	must(err)

	// call: createApiKey
	key, err := client.APIKeys.Create(ctx, till.CreateAPIKey{Name: till.Ptr("reports"), Scopes: []string{till.ScopePaymentsRead}})
	// end
	must(err)
	// call: listApiKeys
	keys, err := client.APIKeys.List(ctx)
	// end
	must(err, keys)
	// call: rotateApiKey
	key, err = client.APIKeys.Rotate(ctx, key.ID, till.RotateAPIKey{OverlapSeconds: till.Ptr[int64](3600)})
	// end
	must(err)
	// call: revokeApiKey
	revoked, err := client.APIKeys.RevokeAll(ctx, key.ID) // with the keys that it made
	// end
	must(err, revoked)

	waiting, err := client.Payments.Create(ctx, till.CreatePayment{
		Method: "mtn_momo", Country: till.Ptr("CG"), Amount: till.Minor("700", "XAF"),
		Customer: till.CreatePaymentCustomer{Phone: "242061230000"}, IdempotencyKey: draw(),
	})
	must(err)
	for {
		// call: listSandboxPrompts
		prompts, err := client.Sandbox.Prompts(ctx)
		// end
		must(err)
		if len(prompts.Items) > 0 {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	// call: decideSandboxPrompt
	decision, err := client.Sandbox.Decide(ctx, waiting.ID, "approve")
	// end
	must(err, decision)
	// call: listSandboxStories
	stories, err := client.Sandbox.Stories(ctx)
	// end
	must(err, stories)
}
