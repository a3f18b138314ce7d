package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till"
	"till/account"
	"till/provider/sandbox"
	"till/store"
)

// TestKillDuringRefunds kills the server while its client gives payments back, many times in a
// row, and opens the books after each: every refund that was answered is there, under one id
// for each key, and every invariant holds. At the end the operator's own book decides: it has
// paid each refund once that we say is paid, and no other. TILL_KILLS says how many times.
func TestKillDuringRefunds(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it starts and kills servers")
	}
	t.Parallel()
	kills := asked("TILL_KILLS", 4)
	k := newKilling(t)
	s := k.start()
	b := newGivingBack(k)
	b.payments(90)
	k.settle()
	for range kills {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(100+rand.IntN(400))*time.Millisecond)
		killed := s // the kill comes while requests are on their way
		context.AfterFunc(ctx, func() { killed.cmd.Process.Kill() })
		b.load(ctx, 3, loadPause)
		<-ctx.Done()
		cancel()
		k.end(s, syscall.SIGKILL)
		k.verify()
		b.verify()
		s = k.start()
	}
	b.retryAll()
	b.settle()
	k.end(s, syscall.SIGTERM)
	k.verify()
	b.verify()
	t.Logf("%d kills, %d refunds answered, %d tried again, refused %v", kills, len(b.made), b.retried, b.refused)
	if len(b.made) < 10 {
		t.Errorf("only %d refunds were made", len(b.made))
	}
}

// givenBack are the numbers whose refunds take each way that ends.
var givenBack = []string{"4567", "4568", "4569", "0031", "0033", "0034", "0035", "0036"}

// givingBack is a client that gives its payments back, and what it knows of that.
type givingBack struct {
	k      *killing
	key    string
	client till.ID

	mu      sync.Mutex
	made    map[string]string // idempotency key → refund id
	open    []string          // bodies whose answer was lost
	refused map[string]int    // by code
	retried int
}

func newGivingBack(k *killing) *givingBack {
	k.t.Helper()
	b := &givingBack{k: k, made: map[string]string{}, refused: map[string]int{}}
	k.withStore(func(s *store.Store) error {
		err := s.View(k.t.Context(), func(tx *store.Tx) error {
			clients, err := tx.Clients(k.t.Context(), till.ID{}, 1)
			b.client = clients[0].ID
			return err
		})
		if err == nil {
			b.key, _, err = account.New(s, nil).CreateKey(k.t.Context(), b.client, "refunds", []till.Scope{till.PaymentsRead, till.PaymentsWrite, till.RefundsWrite}, 0, "a test")
		}
		return err
	})
	return b
}

// payments lets customers pay whose refunds take each way.
func (b *givingBack) payments(n int) {
	b.k.t.Helper()
	for i := range n {
		key := newUUID().String()
		body := fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"%d","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"24206123%s"}}`,
			1000+rand.IntN(10_000), key, givenBack[i%len(givenBack)])
		if !b.k.send(b.k.t.Context(), body, key) {
			b.k.t.Fatal("a payment got no answer")
		}
	}
}

// load gives payments back, in full and in parts, from several connections until ctx ends.
func (b *givingBack) load(ctx context.Context, connections int, between time.Duration) {
	payments := slices.Collect(maps.Values(b.k.answered))
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for ; ctx.Err() == nil; pause(ctx, between) {
				amount := ""
				if rand.IntN(2) == 0 {
					amount = fmt.Sprintf(`"amount":{"value":"%d","currency":"XAF"},`, 100+rand.IntN(2000))
				}
				b.send(fmt.Sprintf(`{"payment_id":"%s",%s"idempotency_key":"%s"}`, payments[rand.IntN(len(payments))], amount, newUUID()))
			}
		})
	}
	wg.Wait()
}

// send asks for a refund and reports whether there was an answer.
func (b *givingBack) send(body string) bool {
	req, _ := http.NewRequest(http.MethodPost, b.k.base()+"/refunds", strings.NewReader(body))
	req.Header.Set("X-Api-Key", b.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	var answer struct{ ID, Code string }
	var sent struct {
		Key string `json:"idempotency_key"`
	}
	json.Unmarshal([]byte(body), &sent)
	if err == nil {
		defer resp.Body.Close()
		var text []byte
		if text, err = io.ReadAll(resp.Body); err == nil {
			err = json.NewDecoder(bytes.NewReader(text)).Decode(&answer)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil || resp.StatusCode == http.StatusServiceUnavailable:
		b.open = append(b.open, body)
		return false
	case resp.StatusCode == http.StatusAccepted:
		if first, ok := b.made[sent.Key]; ok && first != answer.ID {
			b.k.t.Errorf("key %s made two refunds, %s and %s", sent.Key, first, answer.ID)
		}
		b.made[sent.Key] = answer.ID
		return true
	}
	if b.refused[answer.Code]++; !slices.Contains([]string{"payment_not_refundable", "refund_exceeds_payment", "refund_in_progress", "insufficient_balance", "validation_failed"}, answer.Code) {
		b.k.t.Errorf("%s is answered %d %s", body, resp.StatusCode, answer.Code)
	}
	return true
}

// retryAll sends again what got no answer, with its key.
func (b *givingBack) retryAll() {
	open := b.open
	b.open = nil
	for _, body := range open {
		if !b.send(body) {
			b.k.t.Errorf("a retry got no answer: %s", body)
		}
	}
	b.retried += len(open)
}

// each calls f with all refunds and what the operator has paid for each.
func (b *givingBack) each(f func(p *store.PayoutRow, credits int)) {
	b.k.t.Helper()
	ctx := b.k.t.Context()
	o, err := sandbox.Open(ctx, sandbox.Config{Path: b.k.book})
	if err != nil {
		b.k.t.Fatal(err)
	}
	defer o.Close()
	all, err := o.Credits(ctx)
	if err != nil {
		b.k.t.Fatal(err)
	}
	credits := map[till.ID]int{}
	for _, c := range all {
		credits[c.Payout]++
	}
	b.k.withStore(func(s *store.Store) error {
		return s.View(ctx, func(tx *store.Tx) error {
			for offset := 0; ; offset += 200 {
				rows, _, err := store.ListRefunds(ctx, tx, b.client, store.PaymentFilter{}, store.Page{Limit: 200, Offset: offset})
				if err != nil || len(rows) == 0 {
					return err
				}
				for _, p := range rows {
					f(p, credits[p.ID])
				}
			}
		})
	})
}

// verify wants every refund that was answered, and that the operator has paid none twice.
func (b *givingBack) verify() {
	b.k.t.Helper()
	there := map[string]string{}
	b.each(func(p *store.PayoutRow, credits int) {
		there[p.IdempotencyKey] = p.ID.String()
		if credits > 1 {
			b.k.t.Errorf("refund %s was paid %d times", p.ID, credits)
		}
	})
	for key, id := range b.made {
		if there[key] != id {
			b.k.t.Errorf("refund %s was answered and is not there", id)
		}
	}
}

// settle waits until every refund has ended and the operator has paid those, and only those,
// that are booked: one that it paid late is found by a later read.
func (b *givingBack) settle() {
	b.k.t.Helper()
	for end := time.Now().Add(killWindow + 3*time.Minute); ; <-time.After(500 * time.Millisecond) {
		var wrong []string
		b.each(func(p *store.PayoutRow, credits int) {
			booked := map[bool]int{true: 1}[p.Status == till.PayoutSuccess || p.LateEvent != 0]
			if !p.Status.Final() || credits != booked {
				wrong = append(wrong, fmt.Sprintf("%s to %s is %s, late %t, paid %d times", p.ID, p.Phone, p.Status, p.LateEvent != 0, credits))
			}
		})
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(end) {
			b.k.t.Errorf("after minutes: %s", strings.Join(wrong, "; "))
			return
		}
	}
}
