package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	t.Parallel()
	members := []string{"method", "country", "amount", "idempotency_key", "reference", "description", "metadata", "customer"}
	events := []string{"payment.pending", "payment.success", "payment.failed", "payment.reversed", "payout.success", "payout.cancelled"}
	methods := []string{"mtn_momo", "airtel_money", "mpesa"}
	for _, c := range []struct {
		word  string
		known []string
		want  string
	}{
		{"refrence", members, "reference"},
		{"idempotencyKey", members, "idempotency_key"},
		{"Idempotency-Key", members, "idempotency_key"},
		{"refernece", members, "reference"},
		{"Reference", members, "reference"},
		{"meta", members, "metadata"},
		{"x", members, ""},
		{"", members, ""},
		{"colour", members, ""},
		{"é", members, ""},
		{"\xff\xfe", members, ""},
		{strings.Repeat("reference", 10), members, ""},
		{"payment.succeeded", events, "payment.success"},
		{"payout.succeeded", events, "payout.success"},
		{"payout.canceled", events, "payout.cancelled"},
		{"mtn", methods, "mtn_momo"},
		{"m-pesa", methods, "mpesa"},
		{"airtel", methods, "airtel_money"},
		{"visa", methods, ""},
		{"visa", nil, ""},
	} {
		if got := Word(c.word, c.known); got != c.want {
			t.Errorf("%q means %q, want %q", c.word, got, c.want)
		}
	}
}
