package words_test

import (
	"testing"

	"till"
	"till/webhook"
)

// addHookFamilies adds the words of webhooks.
func addHookFamilies(t testing.TB, f map[string][]string) {
	f["trouble."] = list(webhook.Troubles)
	f["problem."] = []string{webhook.ProblemTimeout, webhook.ProblemDNS, webhook.ProblemConnect, webhook.ProblemTLS, webhook.ProblemReset, webhook.ProblemMalformed,
		webhook.ProblemRedirect, webhook.ProblemAddressRefused, webhook.ProblemCancelled}
	f["overlap."] = []string{"for_24", "for_1", "for_168", "for_0"}
	f["hooks."] = []string{"show_all", "show_pending", "show_delivered", "show_exhausted", "show_disabled", "kind_event", "kind_redelivery", "kind_replay", "kind_test",
		"about_payment", "about_payout", "about_refund", "wrong_url", "wrong_description", "wrong_events"}
	f["done."] = append(f["done."], "endpoint_changed", "endpoint_on", "endpoint_off", "endpoint_test", "sent_again", "range_again", "endpoint_deleted")
	f["refusal."] = append(f["refusal."], "endpoint_disabled", "shown_once", "name_changed", "name_taken", "key_unknown", "key_replaced")
	f["done."] = append(f["done."], "key_revoked")
	f["scope."] = list(till.Scopes)
	f["apikey."] = []string{"allows_" + string(till.RefundsWrite), "allows_" + string(till.PayoutsWrite), "allows_" + string(till.KeysManage)}
	f["settings."] = []string{"mode_test", "mode_live", "wrong_name", "wrong_zone", "wrong_country", "wrong_language", "wrong_receipt_head", "wrong_receipt_foot"}
	f["act."] = actsInCode(t)
}
