package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"till/internal/dev/faulty"
)

// settle is how long a good end must stay one: a second act comes late.
const settle = 300 * time.Millisecond

// judge waits until the books and the shop say what is expected, and looks
// again.
func (p *play) judge(ctx context.Context) error {
	most := 45 * time.Second
	if p.mutant != "" {
		most = 4 * time.Second
	}
	if err := eventually(ctx, most, func() error { return p.verdict(ctx) }); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	return p.verdict(ctx)
}

// verdict compares everything that is expected.
func (p *play) verdict(ctx context.Context) error {
	var errs []error
	say := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	x := p.Expect
	p.posts(say)
	for noun, want := range map[string]*int{"payments": x.Payments, "payouts": x.Payouts, "refunds": x.Refunds, "checkouts": x.Pages} {
		if want == nil {
			continue
		}
		all, err := p.books.list(ctx, noun)
		if err != nil {
			return err
		}
		say(len(all) == *want, "there are %d %s, want %d", len(all), noun, *want)
	}
	for _, order := range slices.Sorted(maps.Keys(merged(x.Status, x.Amounts))) {
		found, err := p.books.of(ctx, order)
		if err != nil {
			return err
		}
		if found == nil {
			say(false, "the books know nothing of %s", order)
			continue
		}
		say(x.Status[order] == "" || found.Status == x.Status[order], "%s is %s, want %s", order, found.Status, x.Status[order])
		say(x.Amounts[order] == "" || found.Amount.Value == x.Amounts[order], "%s is about %s, want %s", order, found.Amount.Value, x.Amounts[order])
	}
	for order, want := range x.Quantities {
		found, err := p.books.of(ctx, order)
		if err != nil || found == nil {
			return fmt.Errorf("no payment of %s: %w", order, err)
		}
		say(len(found.Charge.Items) == 1 && found.Charge.Items[0].Quantity.String() == want, "%s is about %v things, want %s", order, found.Charge.Items, want)
	}
	if x.ListedAll {
		all, err := p.books.list(ctx, "payments")
		if err != nil {
			return err
		}
		for _, one := range all {
			say(!strings.HasPrefix(one.Reference, "fill-") || p.listed[one.ID], "%s is missing in the list", one.Reference)
		}
	}
	if x.Balance != nil {
		got, err := p.books.balances(ctx)
		if err != nil {
			return err
		}
		say(maps.Equal(got, x.Balance), "the wallets have %v, want %v", got, x.Balance)
	}
	if x.Acted != nil {
		got, err := p.acted(ctx)
		if err != nil {
			return err
		}
		say(maps.EqualFunc(got, x.Acted, slices.Equal[[]string]), "the shop did %v, want %v", got, x.Acted)
	}
	return errors.Join(errs...)
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// posts compares what the proxy saw.
func (p *play) posts(say func(ok bool, format string, args ...any)) {
	x, seen := p.Expect, p.proxy.Seen()
	creates, refunds, checkouts := posted(seen, "/payments"), posted(seen, "/refunds"), posted(seen, "/checkouts")
	is := func(want *int, got int, what string) {
		say(want == nil || *want == got, "%d %s, want %d", got, what, deref(want))
	}
	is(x.Posts, len(creates), "posts of payments")
	is(x.Keys, keysOf(creates), "different keys")
	is(x.RefundPosts, len(refunds), "posts of refunds")
	is(x.RefundKeys, keysOf(refunds), "different keys of refunds")
	is(x.CheckoutPosts, len(checkouts), "posts of checkouts")
	is(x.CheckoutKeys, keysOf(checkouts), "different keys of checkouts")
	is(x.Cancels, len(posted(seen, "/cancel")), "posts of cancels")
	is(x.NewKeys, len(posted(seen, "/api-keys")), "posts of API keys")
	say(x.MinPosts == nil || len(creates) >= *x.MinPosts, "%d posts of payments, at least %d", len(creates), deref(x.MinPosts))
	say(x.MaxPosts == nil || len(creates) <= *x.MaxPosts, "%d posts of payments, at most %d", len(creates), deref(x.MaxPosts))
	if x.MaxReads != nil {
		reads := slices.DeleteFunc(slices.Clone(seen), func(s faulty.Seen) bool { return s.Method != "GET" || !strings.Contains(s.Path, "/payments/") })
		say(len(reads) > 0 && len(reads) <= *x.MaxReads, "%d reads of single payments, at most %d", len(reads), *x.MaxReads)
	}
	if x.Gap != nil || x.MaxGap != nil {
		if len(creates) < 2 {
			say(false, "there is no second post")
			return
		}
		gap := creates[1].At.Sub(creates[0].At)
		say(x.Gap == nil || gap >= time.Duration(*x.Gap)*time.Millisecond, "the second post came after %s", gap)
		say(x.MaxGap == nil || gap <= time.Duration(*x.MaxGap)*time.Millisecond, "the second post came after %s", gap)
	}
}

// keysOf counts the different keys of creates.
func keysOf(creates []faulty.Seen) int {
	keys := map[string]bool{}
	for _, s := range creates {
		var body struct {
			Key string `json:"idempotency_key"`
		}
		_ = json.NewDecoder(bytes.NewReader(s.Body)).Decode(&body)
		keys[body.Key] = true
	}
	return len(keys)
}

func deref(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func posted(seen []faulty.Seen, suffix string) []faulty.Seen {
	return slices.DeleteFunc(slices.Clone(seen), func(s faulty.Seen) bool { return s.Method != "POST" || !strings.HasSuffix(s.Path, suffix) })
}

// acted asks the shop what it did.
func (p *play) acted(ctx context.Context) (map[string][]string, error) {
	result, err := p.driver.do(ctx, map[string]any{"do": "acted"})
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	all, _ := result["acted"].(map[string]any)
	for order, list := range all {
		for _, what := range list.([]any) {
			out[order] = append(out[order], what.(string))
		}
	}
	return out, nil
}
