package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	till "github.com/till-project/till/sdk/go"
)

// Shop is a store with the shop's own tables beside it.
type Shop[T any] struct {
	Store  till.Store[T]
	Update func(ctx context.Context, fn func(tx T) error) error
	Act    func(ctx context.Context, tx T, order, what string) error // notes what the shop did
	Acted  func(ctx context.Context) (map[string][]string, error)
}

// command is one line of the suite.
type command struct {
	Do, Order, ID, Point, Addr, Mutant, State, Value, Currency, Major, Phone, Method, Country, Status, Quantity, Kind, Reason, Query string

	BaseURL  string   `json:"base_url"`
	KeyFile  string   `json:"key_file"` // the API key is read from it for each call
	Expect   string   // "live" or "test"
	Secrets  []string // of the webhook
	Seconds  float64
	From     int // of buy, give_back and open_checkouts
	Metadata map[string]any
	Return   string           `json:"return_url"`
	Options  map[string]int64 // milliseconds, but for tries
	N        int
}

// result is one line for the suite.
type result map[string]any

type driver[T any] struct {
	open   func(folder string) (Shop[T], error)
	shop   Shop[T]
	client *till.Client
	teller *till.Teller[T]
	mutant string
	state  string
	armed  atomic.Value // the point at which to die
	fails  atomic.Int32 // how often the function is still to fail
	server *http.Server

	givesBack bool     // the function gives back what was paid twice
	booked    sync.Map // refunds, by order and amount, as one should not
}

// Main reads commands until there are no more.
func Main[T any](open func(folder string) (Shop[T], error)) {
	d := &driver[T]{open: open}
	d.armed.Store("")
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var c command
		r := result{"error": "malformed"}
		if err := json.Unmarshal(in.Bytes(), &c); err == nil {
			r = d.do(context.Background(), c)
		}
		if err := out.Encode(r); err != nil {
			return
		}
	}
}

func (d *driver[T]) do(ctx context.Context, c command) result {
	switch c.Do {
	case "new":
		return told(d.start(c), nil)
	case "collect", "payout", "refund", "checkout":
		return told(d.write(ctx, c), nil)
	case "come_back":
		return d.comeBack(ctx, c)
	case "open_checkouts":
		return d.openCheckouts(ctx, c)
	case "give_back":
		return d.giveBack(ctx, c)
	case "send":
		switch c.Kind {
		case till.KindPayout:
			return sent(d.teller.SendPayOut(ctx, c.Order))
		case till.KindRefund:
			return d.sendRefund(ctx, c.Order)
		case till.KindCheckout:
			return d.sendCheckout(ctx, c.Order)
		}
		return sent(d.teller.Send(ctx, c.Order))
	case "resend":
		return sent(d.teller.Resend(ctx, c.Order))
	case "withdraw":
		return told(d.teller.Withdraw(ctx, c.Order), nil)
	case "abandon":
		return told(d.teller.Abandon(ctx, c.Order), nil)
	case "wait":
		return d.wait(ctx, c)
	case "sweep":
		r, err := d.teller.Sweep(ctx)
		attention := map[string]string{}
		for _, a := range r.Attention {
			attention[a.Order] = a.State
		}
		return told(err, result{"sent": r.Sent, "waiting": r.Waiting, "applied": r.Applied, "read": r.Read, "attention": attention})
	case "buy":
		return d.buy(ctx, c)
	case "run":
		go func() { _ = d.teller.Run(ctx) }()
		return result{}
	case "serve":
		return told(d.serve(c), nil)
	case "crash_at":
		d.armed.Store(c.Point)
		return result{}
	case "fail":
		d.fails.Store(int32(c.N))
		return result{}
	case "acted":
		return d.acted(ctx)
	case "list":
		return d.list(ctx, c)
	case "cancel":
		if c.Kind == till.KindCheckout {
			return d.cancelCheckout(ctx, c.Order)
		}
		o, err := d.teller.WaitPayOut(ctx, c.Order, 0)
		if errors.Is(err, till.ErrStillOpen) || err == nil {
			return d.cancel(ctx, c, o)
		}
		return told(err, nil)
	case "get":
		p, err := d.client.Payments.Get(ctx, c.ID)
		if err != nil {
			return told(err, nil)
		}
		return result{"status": p.Status, "raw": p.Raw}
	case "create_key":
		_, err := d.client.APIKeys.Create(ctx, till.CreateAPIKey{Name: till.Ptr("suite")})
		return told(err, nil)
	}
	return result{"error": "no such command"}
}

// start opens the store and makes client and teller.
func (d *driver[T]) start(c command) error {
	ms := func(name string, otherwise time.Duration) time.Duration {
		if v, ok := c.Options[name]; ok {
			return time.Duration(v) * time.Millisecond
		}
		return otherwise
	}
	if c.Mutant != "" && !slices.Contains(Mutants, c.Mutant) {
		return errors.New("no such mutant")
	}
	d.mutant, d.state, d.givesBack = c.Mutant, c.State, c.Options["give_back"] != 0
	folder := c.State
	if d.mutant == "key_not_stored" {
		folder = filepath.Join(c.State, fmt.Sprint("forgotten-", os.Getpid()))
	}
	var err error
	if d.shop, err = d.open(folder); err != nil {
		return err
	}
	key := func(context.Context) (string, error) {
		time.Sleep(ms("key_wait", 0))
		text, err := os.ReadFile(c.KeyFile)
		return strings.TrimSpace(string(text)), err
	}
	tries := 5
	if n, ok := c.Options["tries"]; ok {
		tries = int(n)
	}
	d.client, err = till.New(c.BaseURL, key, till.WithDeadline(ms("deadline", 20*time.Second)), till.WithTryTimeout(ms("try_timeout", 3*time.Second)),
		till.WithTries(tries), till.WithExpect(c.Expect), till.WithTransport(&transport{crash: d.crash, mutant: d.mutant, Transport: http.Transport{MaxIdleConnsPerHost: 16}}))
	if err != nil {
		return err
	}
	skew := ms("clock", 0)
	options := []till.TellerOption{
		till.WithSendUntil(ms("send_until", 10*time.Minute), ms("send_until", 24*time.Hour)), till.WithLookAfter(ms("look_after", time.Minute)),
		till.WithOpenAfter(ms("open_after", 2*time.Minute)), till.WithClock(func() time.Time { return time.Now().Add(skew) }),
	}
	if c.Options["foreign"] != 0 || d.mutant == "foreign_handed_over" || asksAlone(d.mutant) {
		options = append(options, till.WithForeign())
	}
	if c.Options["from_end"] == 0 || d.mutant == "history_shipped" {
		options = append(options, till.WithFromStart())
	}
	d.teller = till.NewTeller(d.client, till.Store[T](&store[T]{d.shop.Store, d.crash, d.mutant}), d.onChange, options...)
	return d.shop.Store.Install(context.Background())
}

// crash ends the program at once if it is to die here.
func (d *driver[T]) crash(point string) {
	if d.armed.Load() == point {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {}
	}
}

// write writes a wish beside an order, in one transaction.
func (d *driver[T]) write(ctx context.Context, c command) error {
	switch c.Do {
	case "refund":
		return d.refund(ctx, c)
	case "checkout":
		return d.checkout(ctx, c)
	}
	amount := till.Minor(c.Value, c.Currency)
	var err error
	if c.Major != "" {
		if amount, err = d.major(c); err != nil {
			return err
		}
	}
	var charge *till.CreatePaymentCharge
	if c.Quantity != "" {
		q := till.Decimal(c.Quantity)
		if d.mutant == "float_amount" {
			q = floated(c.Quantity)
		}
		charge = &till.CreatePaymentCharge{Items: []till.CreatePaymentChargeItem{{Name: "thing", Quantity: q, UnitPrice: "0", Total: "0"}}}
	}
	err = d.shop.Update(ctx, func(tx T) error {
		if c.Do == "payout" {
			return d.teller.PayOut(ctx, tx, till.PayOut{Order: c.Order, Method: c.Method, Country: c.Country, Amount: amount, Phone: c.Phone})
		}
		return d.teller.Collect(ctx, tx, till.Collect{Order: c.Order, Method: c.Method, Country: c.Country, Amount: amount, Phone: c.Phone, Metadata: c.Metadata, Charge: charge})
	})
	if err == nil {
		d.crash("after_write")
	}
	return err
}

// onChange is the shop's one function.
func (d *driver[T]) onChange(ctx context.Context, tx T, c till.Change) error {
	if d.misheard(&c) {
		return nil
	}
	order := c.Order
	if order == "" {
		order = "foreign " + c.Reference
	}
	if d.fails.Add(-1) >= 0 {
		return errors.New("the shop's function fails")
	}
	what := map[bool]string{true: "paid", false: strings.ReplaceAll(c.Kind, ".", " ")}[c.Paid()]
	switch {
	case c.Paid() && c.AlreadyPaid:
		what = "give back"
	case c.Checkout != nil:
		what = onPage(c)
	case c.Failed():
		what = "failed"
	case c.TakenBack():
		what = "taken back"
	case c.PaidOut():
		what = "paid out"
	case c.PayoutFailed():
		what = "payout failed"
	case c.Refunded():
		what = refunded(c)
	case c.RefundFailed():
		what = "refund failed"
	case c.Refused() || c.Lapsed() || c.Lost():
		what = c.Kind[strings.Index(c.Kind, ".")+1:]
		for _, f := range c.Errors {
			what += " " + f.Pointer
		}
	}
	if c.Lapsed() && d.mutant == "lapse_forgotten" {
		return nil
	}
	if c.Refunded() && d.misbooked(c) {
		return nil
	}
	d.crash("in_function")
	if d.mutant == "function_outside" {
		return d.actOutside(order, what)
	}
	if d.givesBack && (c.AlreadyPaid || c.Overpaid()) {
		if err := d.teller.Refund(ctx, tx, till.GiveBack{Order: c.Order, Payment: c.Extra(), Reason: "duplicate"}); err != nil {
			return err
		}
	}
	return d.shop.Act(ctx, tx, order, what)
}

func (d *driver[T]) wait(ctx context.Context, c command) result {
	limit := time.Duration(c.Seconds * float64(time.Second))
	if c.Kind == till.KindPayout {
		o, err := d.teller.WaitPayOut(ctx, c.Order, limit)
		if err != nil {
			return told(err, nil)
		}
		return result{"status": o.Status}
	}
	if c.Kind == till.KindRefund {
		o, err := d.teller.WaitRefund(ctx, c.Order, limit)
		if err != nil {
			return told(err, nil)
		}
		return result{"status": o.Status}
	}
	if c.Kind == till.KindCheckout {
		o, err := d.teller.WaitCheckout(ctx, c.Order, limit)
		if err != nil {
			return told(err, nil)
		}
		return result{"status": o.State}
	}
	p, err := d.teller.Wait(ctx, c.Order, limit)
	if err != nil {
		return told(err, nil)
	}
	return result{"status": p.Status}
}

func (d *driver[T]) cancel(ctx context.Context, c command, o *till.Payout) result {
	page, err := d.client.Payouts.Page(ctx, till.PayoutFilter{Reference: c.Order})
	if err == nil && len(page.Items) > 0 && o == nil {
		o = &page.Items[0]
	}
	if err != nil || o == nil {
		return told(errors.Join(err, till.ErrNoAttempt), nil)
	}
	o, err = d.client.Payouts.Cancel(ctx, o.ID)
	if err != nil {
		return told(err, nil)
	}
	return result{"status": o.Status}
}

// serve receives webhooks.
func (d *driver[T]) serve(c command) error {
	if d.server != nil {
		_ = d.server.Close()
	}
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return err
	}
	d.server = &http.Server{Handler: mutated(d.mutant, c.Secrets, d.teller.Webhook(c.Secrets...)), ReadHeaderTimeout: time.Minute}
	go func() { _ = d.server.Serve(l) }()
	return nil
}

// list goes through all payments, and tells which come twice.
func (d *driver[T]) list(ctx context.Context, c command) result {
	seen := map[string]int{}
	ids := []string{}
	each := d.client.Payments.All(ctx, till.PaymentFilter{Status: c.Status, OldestFirst: c.Kind == "asc"})
	if d.mutant == "offset_paging" {
		each = d.byOffset(ctx, c)
	}
	for p, err := range each {
		if err != nil {
			return told(err, nil)
		}
		if seen[p.ID]++; seen[p.ID] == 1 {
			ids = append(ids, p.ID)
		}
		if c.N > 0 && len(ids)%c.N == 0 {
			time.Sleep(20 * time.Millisecond) // somebody reads slowly
		}
	}
	twice := 0
	for _, n := range seen {
		twice += n - 1
	}
	return result{"count": len(ids), "twice": twice, "ids": ids}
}

// sent is the result of a send.
func sent(p till.Progress, err error) result {
	if err != nil {
		return told(err, nil)
	}
	r := result{"state": string(p.State), "replayed": p.Replayed}
	if p.Err != nil {
		r["why"] = told(p.Err, nil)["error"]
	}
	return r
}

// pointers are the members that are wrong.
func pointers(errs []till.FieldError) []string {
	out := []string{}
	for _, f := range errs {
		out = append(out, f.Pointer)
	}
	return out
}

// told puts an error into one word, with its code.
func told(err error, r result) result {
	if r == nil {
		r = result{}
	}
	var (
		refused     *till.Refused
		unavailable *till.Unavailable
		unclear     *till.Unclear
		failure     *till.Failure
		invalid     *till.InvalidWish
		open        *till.AttemptOpen
		paid        *till.AlreadyPaid
		unpaid      *till.NotPaid
		returned    *till.ReturnError
	)
	switch {
	case err == nil:
		return r
	case errors.As(err, &open):
		r["error"] = "attempt_open"
	case errors.As(err, &paid):
		r["error"] = "already_paid"
	case errors.As(err, &unpaid):
		r["error"] = "not_paid"
	case errors.As(err, &returned):
		r["error"] = returned.Word
	case errors.As(err, &invalid):
		r["error"], r["member"] = "invalid", invalid.Member
	case errors.Is(err, till.ErrStillOpen):
		r["error"] = "still_open"
	case errors.Is(err, till.ErrMayArrive):
		r["error"] = "may_have_arrived"
	case errors.Is(err, till.ErrWrongMode):
		r["error"] = "wrong_mode"
	case errors.As(err, &refused):
		r["error"] = "refused"
	case errors.As(err, &unavailable):
		r["error"] = "unavailable"
	case errors.As(err, &unclear):
		r["error"] = "unclear"
	default:
		r["error"] = "other"
	}
	if errors.As(err, &failure) {
		r["code"], r["status"], r["retry_after"], r["tries"] = failure.Code, failure.Status, failure.RetryAfter.Seconds(), failure.Tries
		r["detail"], r["pointers"] = failure.Detail, pointers(failure.Errors)
	}
	r["text"] = err.Error()
	return r
}
