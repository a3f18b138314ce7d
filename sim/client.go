package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// book is what the client knows from answers alone.
type book struct {
	mu     sync.Mutex
	orders map[string]*Order // by idempotency key
}

func newBook() book { return book{orders: map[string]*Order{}} }

// Order is a payment or payout that the client asked for.
type Order struct {
	Kind, Key, path, body string
	ID                    string   // from the first answer
	others                []string // ids of later answers that differ: there must be none
	Refused               string   // the code of a refusal; "" if it was accepted
}

// patience is how long a client tries.
const patience = 20 * time.Minute

// do makes one request to an instance. It reports false if no answer came.
func (w *World) do(method, path, body string) (status int, answer []byte, ok bool) {
	i := w.up()
	if i == nil {
		return 0, nil, false
	}
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				panic(v)
			}
			status, answer, ok = 0, nil, false
		}
	}()
	r := httptest.NewRequest(method, "/v1"+path, bytes.NewBufferString(body))
	r.Header.Set("X-Api-Key", w.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	rw := httptest.NewRecorder()
	i.ServeHTTP(rw, r)
	return rw.Code, rw.Body.Bytes(), true
}

// again makes a request until it is answered, other than by an error of ours.
func (w *World) again(method, path, body string) (status int, answer []byte) {
	for end := time.Now().Add(patience); ; time.Sleep(3 * time.Second) {
		status, answer, ok := w.do(method, path, body)
		if ok && status < 500 && status != http.StatusTooManyRequests {
			return status, answer
		}
		if time.Now().After(end) {
			w.T.Errorf("%s %s is still answered %d %s", method, path, status, answer)
			return status, answer
		}
	}
}

// create makes something by POST and reads the answer into made.
func (w *World) create(path, body string, made any) {
	status, answer := w.again(http.MethodPost, path, body)
	if status/100 != 2 {
		w.T.Errorf("POST %s is answered %d %s", path, status, answer)
		return
	}
	if err := json.Unmarshal(answer, made); err != nil {
		w.T.Error(err)
	}
}

// markets are where an order goes by its operator, with the number that goes well.
var markets = map[string]struct{ method, country, currency string }{
	"mtnmomo": {"mtn_momo", "CG", "XAF"}, "airtel": {"airtel_money", "CG", "XAF"}, "mpesa": {"mpesa", "KE", "KES"}, "pawapay": {"mtn_momo", "CM", "XAF"},
	"wave": {"wave", "SN", "XOF"}, "orange": {"orange_money", "BF", "XOF"}, // both at pawaPay
}

// Pay asks for a payment at an operator until it is answered.
func (w *World) Pay(operator, phone string, amount int) *Order {
	return w.order("payment", operator, phone, amount)
}

// PayWith is Pay with what the market needs besides the number: members of the body, in JSON.
func (w *World) PayWith(market, phone string, amount int, members string) *Order {
	m := markets[market]
	return w.ask("payment", fmt.Sprintf(`{"method":%q,"country":%q,"amount":{"value":"%d","currency":%q},"idempotency_key":%%q,"customer":{"phone":%q},%s}`,
		m.method, m.country, amount, m.currency, phone, members))
}

// Send asks for a payout.
func (w *World) Send(operator, phone string, amount int) *Order {
	return w.order("payout", operator, phone, amount)
}

// Refund asks for a payment, or a part of it, to be given back.
func (w *World) Refund(p *Order, amount int) *Order {
	return w.ask("refund", fmt.Sprintf(`{"payment_id":%q,"amount":{"value":"%d","currency":"XAF"},"idempotency_key":%%q}`, p.ID, amount))
}

func (w *World) order(kind, operator, phone string, amount int) *Order {
	party := map[string]string{"payment": "customer", "payout": "recipient"}[kind]
	m := markets[operator]
	return w.ask(kind, fmt.Sprintf(`{"method":%q,"country":%q,"amount":{"value":"%d","currency":%q},"idempotency_key":%%q,%q:{"phone":%q}}`,
		m.method, m.country, amount, m.currency, party, phone))
}

// ask makes an order of a body that lacks its key.
func (w *World) ask(kind, body string) *Order {
	w.answers.mu.Lock()
	o := &Order{Kind: kind, Key: fmt.Sprintf("00000000-0000-4000-8000-%012d", len(w.answers.orders)), path: "/" + kind + "s"}
	w.answers.orders[o.Key] = o
	w.answers.mu.Unlock()
	o.body = fmt.Sprintf(body, o.Key)
	w.repeat(o)
	return o
}

// repeat makes the call of an order once more. A page's ask is no call of the client's.
func (w *World) repeat(o *Order) {
	if o.path == "" {
		return
	}
	status, answer := w.again(http.MethodPost, o.path, o.body)
	var made struct{ ID, Code string }
	if err := json.Unmarshal(answer, &made); err != nil {
		w.T.Errorf("%s %s is answered %d %s", o.Kind, o.Key, status, answer)
		return
	}
	switch {
	case status != http.StatusAccepted:
		o.Refused = made.Code
		w.T.Errorf("%s %s is answered %d %s", o.Kind, o.Key, status, answer)
	case o.ID == "":
		o.ID = made.ID
	case o.ID != made.ID && !slices.Contains(o.others, made.ID):
		o.others = append(o.others, made.ID)
	}
}

// Get returns the status of an order as the API tells it.
func (w *World) Get(o *Order) string {
	status, answer := w.again(http.MethodGet, o.path+"/"+o.ID, "")
	var got struct{ Status string }
	if err := json.Unmarshal(answer, &got); err != nil || status != http.StatusOK {
		w.T.Errorf("%s %s is answered %d %s", o.Kind, o.ID, status, answer)
	}
	return got.Status
}

// Await waits, without asking an instance, until an order has a status: most is how long.
func (w *World) Await(o *Order, status string, most time.Duration) {
	w.await(o, status, most, func(r *row) bool { return r.status == status })
}

// AwaitPaid waits until an order's money is in our books.
func (w *World) AwaitPaid(o *Order, most time.Duration) {
	w.await(o, "paid", most, func(r *row) bool { return r.paid })
}

func (w *World) await(o *Order, want string, most time.Duration, is func(r *row) bool) {
	last := &row{}
	for pause, end := time.Second, time.Now().Add(most); time.Now().Before(end); pause = min(pause*5/4, 30*time.Second) {
		time.Sleep(pause)
		for _, r := range w.rows() {
			if r.id == o.ID {
				last = r
			}
		}
		if is(last) {
			return
		}
	}
	w.T.Errorf("after %s %s is not %s", most, last, want)
}

// read reads something into got.
func (w *World) read(path string, got any) {
	status, answer := w.again(http.MethodGet, path, "")
	if err := json.Unmarshal(answer, got); err != nil || status != http.StatusOK {
		w.T.Errorf("GET %s is answered %d %s", path, status, answer)
	}
}
