#!/usr/bin/env bash
# Every call of the API by curl. The reference shows the parts between the marks;
# TestEveryCallOfThePagesRuns runs the program.
set -euo pipefail
BASE=$TILL_BASE_URL KEY=$TILL_API_KEY SHOP=$SHOP_URL
draw() { cat /proc/sys/kernel/random/uuid; } # a shop draws one per order and stores it with the order
curl() { command curl -sS --fail-with-body "$@"; }
first() { [[ $ANSWER =~ '"id":"'([^'"']*) ]]; echo "${BASH_REMATCH[1]}"; } # the first id of the answer
ORDER_KEY=$(draw) PAYOUT_KEY=$(draw) REFUND_KEY=$(draw) CHECKOUT_KEY=$(draw) LINK_KEY=$(draw)

ANSWER=$(
# call: createPayment
curl -s $BASE/payments -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{
  "method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
  "customer": {"phone": "242061230035"}, "reference": "ORDER-1042",
  "idempotency_key": "'$ORDER_KEY'"}'
# end
)
PAYMENT=$(first)
until [[ $ANSWER == *'"status":"success"'* ]]; do
  sleep 0.2
  ANSWER=$(
  # call: getPayment
  curl -s $BASE/payments/$PAYMENT -H "X-Api-Key: $KEY"
  # end
  )
done
{
# call: listPayments
curl -s "$BASE/payments?status=success&limit=200" -H "X-Api-Key: $KEY"
# end
# call: listPaymentAttempts
curl -s $BASE/payments/$PAYMENT/attempts -H "X-Api-Key: $KEY"
# end
# call: listPaymentEvents
curl -s $BASE/payments/$PAYMENT/events -H "X-Api-Key: $KEY"
# end

# call: listPaymentMethods
curl -s $BASE/payment-methods -H "X-Api-Key: $KEY"
# end
# call: predictPaymentMethod
curl -s $BASE/payment-methods/predict -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{
  "phone": "06 123 45 67", "country": "CG"}'
# end
# call: listWallets
curl -s $BASE/wallets -H "X-Api-Key: $KEY"
# end
# call: listTransactions
curl -s "$BASE/transactions?currency=XAF&limit=200" -H "X-Api-Key: $KEY"
# end
} >/dev/null

ANSWER=$(
# call: createRefund
curl -s $BASE/refunds -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{
  "payment_id": "'$PAYMENT'", "amount": {"value": "500", "currency": "XAF"}, "reason": "not_delivered",
  "idempotency_key": "'$REFUND_KEY'"}'
# end
)
REFUND=$(first)
{
# call: getRefund
curl -s $BASE/refunds/$REFUND -H "X-Api-Key: $KEY"
# end
# call: cancelRefund
curl -s -X POST $BASE/refunds/$REFUND/cancel -H "X-Api-Key: $KEY"
# end
# call: listRefunds
curl -s "$BASE/refunds?status=cancelled&limit=200" -H "X-Api-Key: $KEY"
# end
# call: listPaymentRefunds
curl -s $BASE/payments/$PAYMENT/refunds -H "X-Api-Key: $KEY"
# end
# call: listRefundAttempts
curl -s $BASE/refunds/$REFUND/attempts -H "X-Api-Key: $KEY"
# end
# call: listRefundEvents
curl -s $BASE/refunds/$REFUND/events -H "X-Api-Key: $KEY"
# end
} >/dev/null

ANSWER=$(
# call: createCheckout
curl -s $BASE/checkouts -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{
  "amount": {"value": "5000", "currency": "XAF"}, "reference": "ORDER-1043", "description": "Two loaves",
  "return_url": "https://shop.example/done?order=1043",
  "idempotency_key": "'$CHECKOUT_KEY'"}'
# end
)
CHECKOUT=$(first)
{
# call: getCheckout
curl -s $BASE/checkouts/$CHECKOUT -H "X-Api-Key: $KEY"
# end
# call: cancelCheckout
curl -s -X POST $BASE/checkouts/$CHECKOUT/cancel -H "X-Api-Key: $KEY"
# end
# call: listCheckouts
curl -s "$BASE/checkouts?state=cancelled&limit=200" -H "X-Api-Key: $KEY"
# end
} >/dev/null

ANSWER=$(
# call: createLink
curl -s $BASE/links -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{
  "title": "School fees", "open_amount": {"currency": "XAF", "min": "500"},
  "idempotency_key": "'$LINK_KEY'"}'
# end
)
LINK=$(first)
{
# call: getLink
curl -s $BASE/links/$LINK -H "X-Api-Key: $KEY"
# end
# call: updateLink
curl -s -X PATCH $BASE/links/$LINK -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{"active": false}'
# end
# call: listLinks
curl -s "$BASE/links?active=false&limit=200" -H "X-Api-Key: $KEY"
# end
} >/dev/null

ANSWER=$(
# call: createPayout
curl -s $BASE/payouts -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{
  "method": "mtn_momo", "country": "CG", "amount": {"value": "500", "currency": "XAF"},
  "recipient": {"phone": "242061230020"},
  "idempotency_key": "'$PAYOUT_KEY'"}'
# end
)
PAYOUT=$(first)
{
# call: getPayout
curl -s $BASE/payouts/$PAYOUT -H "X-Api-Key: $KEY"
# end
# call: cancelPayout
curl -s -X POST $BASE/payouts/$PAYOUT/cancel -H "X-Api-Key: $KEY"
# end
# call: listPayouts
curl -s "$BASE/payouts?status=cancelled&limit=200" -H "X-Api-Key: $KEY"
# end
# call: listPayoutAttempts
curl -s $BASE/payouts/$PAYOUT/attempts -H "X-Api-Key: $KEY"
# end
# call: listPayoutEvents
curl -s $BASE/payouts/$PAYOUT/events -H "X-Api-Key: $KEY"
# end
} >/dev/null

ANSWER=$(
# call: createWebhookEndpoint
curl -s $BASE/webhook-endpoints -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"url": "'$SHOP'/till", "events": ["*"]}'
# end
)
ENDPOINT=$(first)
{
# call: listWebhookEndpoints
curl -s $BASE/webhook-endpoints -H "X-Api-Key: $KEY"
# end
# call: getWebhookEndpoint
curl -s $BASE/webhook-endpoints/$ENDPOINT -H "X-Api-Key: $KEY"
# end
# call: updateWebhookEndpoint
curl -s -X PATCH $BASE/webhook-endpoints/$ENDPOINT -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"description": "the shop"}'
# end
# call: testWebhookEndpoint
curl -s -X POST $BASE/webhook-endpoints/$ENDPOINT/test -H "X-Api-Key: $KEY"
# end
# call: rotateWebhookSecret
curl -s $BASE/webhook-endpoints/$ENDPOINT/rotate-secret -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"overlap_seconds": 3600}'
# end
# call: replayEvents
curl -s $BASE/webhook-endpoints/$ENDPOINT/replay -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"from_sequence": 1}'
# end
} >/dev/null

ANSWER=$(
# call: listEvents
curl -s "$BASE/events?after=0&limit=200&wait=30" -H "X-Api-Key: $KEY"
# end
)
EVENT=$(first)
{
# call: getEvent
curl -s $BASE/events/$EVENT -H "X-Api-Key: $KEY"
# end
# call: redeliverEvent
curl -s $BASE/events/$EVENT/redeliver -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"endpoint_id": "'$ENDPOINT'"}'
# end
# call: listDeliveries
curl -s "$BASE/webhook-endpoints/$ENDPOINT/deliveries?status=pending&limit=50" -H "X-Api-Key: $KEY"
# end
# call: disableSandboxEndpoint
curl -s -X POST $BASE/sandbox/webhook-endpoints/$ENDPOINT/disable -H "X-Api-Key: $KEY"
# end
# call: deleteWebhookEndpoint
curl -s -X DELETE $BASE/webhook-endpoints/$ENDPOINT -H "X-Api-Key: $KEY"
# end
} >/dev/null

ANSWER=$(
# call: createApiKey
curl -s $BASE/api-keys -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"name": "reports", "scopes": ["payments:read"]}'
# end
)
KEY_ID=$(first)
# call: getMe
curl -s $BASE/me -H "X-Api-Key: $KEY"
# end
# call: listApiKeys
curl -s $BASE/api-keys -H "X-Api-Key: $KEY"
# end
ANSWER=$(
# call: rotateApiKey
curl -s $BASE/api-keys/$KEY_ID/rotate -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"overlap_seconds": 3600}'
# end
)
# call: revokeApiKey
curl -s -X DELETE "$BASE/api-keys/$KEY_ID?cascade=true" -H "X-Api-Key: $KEY"
# end

ANSWER=$(curl $BASE/payments -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' -d '{
  "method": "mtn_momo", "country": "CG", "amount": {"value": "700", "currency": "XAF"},
  "customer": {"phone": "242061230000"}, "idempotency_key": "'$(draw)'"}')
PAYMENT=$(first)
until [[ $ANSWER == *'"payment_id"'* ]]; do
  sleep 0.2
  ANSWER=$(
  # call: listSandboxPrompts
  curl -s $BASE/sandbox/prompts -H "X-Api-Key: $KEY"
  # end
  )
done
# call: decideSandboxPrompt
curl -s $BASE/sandbox/prompts/$PAYMENT -H "X-Api-Key: $KEY" -H 'Content-Type: application/json' \
  -d '{"action": "approve"}'
# end
{
# call: listSandboxStories
curl -s $BASE/sandbox/stories -H "X-Api-Key: $KEY"
# end
# call: getOpenapi
curl -s $BASE/openapi.yaml
# end
# call: getOpenapiJson
curl -s $BASE/openapi.json
# end
} >/dev/null
