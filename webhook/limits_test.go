package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
)

// another registers one more endpoint at the shop's address.
func (s *shop) another(client *till.Client) *till.ID {
	s.w.t.Helper()
	url, events := "http://"+s.addr()+"/more", []string{"*"}
	made, err := s.w.acts.Create(s.w.t.Context(), client, &Request{URL: &url, Events: &events}, awa)
	if err != nil {
		s.w.t.Fatal(err)
	}
	e, secret := made.Endpoint, made.Secret
	s.set(func() { s.secrets = append(s.secrets, secret) })
	return &e.ID
}

// prove makes the shop's endpoint one that has answered 2xx before.
func (s *shop) prove() {
	s.w.t.Helper()
	ctx := context.Background()
	if err := s.w.store.Update(ctx, func(tx *store.Tx) error {
		locked, _, err := webhooks.LockEndpoints(ctx, tx, []store.Ref{s.e.Ref()}, nil)
		if err != nil {
			return err
		}
		e := locked[s.e.Ref()]
		e.Answered = provenAfter
		return webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
	}); err != nil {
		s.w.t.Fatal(err)
	}
}

// most returns the largest number of deliveries in a second.
func (s *shop) most() (most int) {
	book := s.receipts()
	for from, to := 0, 0; to < len(book); to++ {
		for book[to].at.Sub(book[from].at) >= time.Second {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

// attack makes two clients with as many endpoints at the shop's address as they
// can have, each of which has the log replayed as often as can be.
func (s *shop) attack(events int) (clients []*till.Client) {
	t, w := s.w.t, s.w
	t.Helper()
	for range 2 {
		client := storetest.NewClient(t, w.store, till.Test)
		clients = append(clients, client)
		for range events {
			storetest.NewPayment(t, w.collector, client, storetest.Body{})
		}
		from := int64(1)
		for range MaxEndpoints {
			id := s.another(client)
			for range maxReplays {
				if _, err := w.acts.Replay(t.Context(), client.ID, *id, &Replay{From: &from}, awa); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	time.Sleep(time.Second) // the clients' own times are ahead of a clock that is stopped
	for _, client := range clients {
		w.d.Wake(t.Context(), client.ID)
	}
	return clients
}

// What a host is sent over all clients is bounded, also where it takes all of it.
func TestReplaysToOneHostAreBounded(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.attack(100)
		time.Sleep(30 * time.Second)
		if n := s.most(); n > requestedRate+unprovenRate+2*burst {
			t.Errorf("%d posts in one second, want %d at most", n, requestedRate+unprovenRate+2*burst)
		}
		if n := len(s.receipts()); n < 20*requestedRate {
			t.Errorf("%d posts in half a minute: the host takes them, and they should come", n)
		}
		// Beside all that, an ordinary event comes.
		p := w.pay()
		time.Sleep(2 * time.Second)
		if !slices.ContainsFunc(s.receipts(), func(r *receipt) bool { return r.Data.Payment.ID == p.ID.String() }) {
			t.Error("an ordinary event did not come within 2 s")
		}
	})
}

// eventOf returns the id of an event of a client.
func (w *world) eventOf(client *till.Client, sequence int64) (id till.ID) {
	w.t.Helper()
	w.view(func(ctx context.Context, tx *store.Tx) error {
		at, err := tx.EventMade(ctx, client.ID, sequence)
		id = till.EventID(client.ID, sequence, at)
		return err
	})
	return id
}

// An event is not multiplied by the endpoints that a client has at one host, and
// the first of them gets all at once.
func TestManyEndpointsOfAClientAtOneHostAreBounded(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		for range MaxEndpoints - 1 {
			s.another(w.client)
		}
		for range provenAfter {
			w.pay()
		}
		time.Sleep(15 * time.Second)
		s.set(func() { s.book = nil })
		for range 200 {
			w.pay()
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(s.sequences()); n != 200 {
			t.Errorf("%d of 200 events came at once", n)
		}
		if n := s.most(); n < extraRate || n > extraRate+100+burst {
			t.Errorf("%d posts in one second, want %d at most", n, extraRate+100+burst)
		}
		time.Sleep(time.Minute)
		if n := len(s.receipts()); n != 200*MaxEndpoints {
			t.Errorf("%d posts, want %d", n, 200*MaxEndpoints)
		}
	})
}

// A host that answers anything but 2xx is hardly sent anything, whatever is
// asked for.
func TestAHostThatRefusesIsHardlyPostedTo(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				s := w.listen()
				s.answer = func(*receipt) int { return status }
				for _, client := range s.attack(30) {
					event := w.eventOf(client, 1)
					for range 10 { // each asks all endpoints for one more
						if _, err := w.acts.Redeliver(t.Context(), client.ID, event, nil, awa); err != nil {
							t.Fatal(err)
						}
						time.Sleep(100 * time.Millisecond)
					}
				}
				time.Sleep(10 * time.Second)
				if n := s.most(); n < burst || n > unprovenRate+burst {
					t.Errorf("%d posts in one second, want %d at most", n, unprovenRate+burst)
				}
			})
		})
	}
}

// A new endpoint is sent one event at a time until it has answered 2xx a few
// times; then it gets all as ever.
func TestANewEndpointStartsSlowly(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		var mu sync.Mutex
		var now, answered, before, most int // at once: before it was proven, and in all
		s.answer = func(*receipt) int {
			mu.Lock()
			now++
			if most = max(most, now); answered < provenAfter {
				before = max(before, now)
			}
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			now--
			answered++
			return http.StatusOK
		}
		check := func(what string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if before != 1 || most != defaultPerEndpoint {
				t.Errorf("%s: %d at once before it was proven, %d later; want 1 and %d", what, before, most, defaultPerEndpoint)
			}
			answered, before, most = 0, 0, 0
		}
		for range 200 {
			w.pay()
		}
		time.Sleep(3 * time.Second)
		if n := len(s.sequences()); n != 200 {
			t.Errorf("%d of 200 events came within 3 s", n)
		}
		check("new")

		moved := "http://" + s.addr() + "/elsewhere"
		if _, err := w.acts.Patch(t.Context(), w.client, s.e.ID, &Request{URL: &moved}, awa); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			w.pay()
		}
		time.Sleep(3 * time.Second)
		check("moved")

		for _, on := range []bool{false, true} {
			if _, err := w.acts.Patch(t.Context(), w.client, s.e.ID, &Request{Enabled: &on}, awa); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			w.pay()
		}
		time.Sleep(3 * time.Second)
		check("enabled again")
		s.everythingArrived()
	})
}

// A client whose host is slow to answer leaves room for all others, however
// many endpoints it has there.
func TestASlowHostKeepsNobodyWaiting(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		slow, ordinary := w.shop(), w.shopOf(storetest.NewClient(t, w.store, till.Test))
		for range MaxEndpoints - 1 {
			slow.another(w.client)
		}
		for range provenAfter {
			w.pay()
		}
		time.Sleep(20 * time.Second)
		slow.set(func() { slow.answer = func(*receipt) int { time.Sleep(14 * time.Second); return http.StatusOK } })
		for range 30 {
			w.pay()
		}
		time.Sleep(5 * time.Second) // every attempt that can be is under way
		client := &till.Client{ID: ordinary.e.ClientID, Mode: till.Test}
		w.payTo(client)
		time.Sleep(time.Second)
		expect(t, "the other client received", ordinary.got(), "1")
		time.Sleep(5 * time.Minute)
	})
}

// A process that stops with a backlog leaves it to the next one at once, not when
// its lease is over.
func TestAStopGivesTheLeaseBack(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.set(func() { s.answer = func(*receipt) int { time.Sleep(time.Second); return http.StatusOK } })
		for range 200 {
			w.pay()
		}
		time.Sleep(8 * time.Second)
		w.stop()
		before := len(s.receipts())
		w.start(nil)
		time.Sleep(2 * time.Second)
		if after := len(s.receipts()); before == 200 || after == before {
			t.Errorf("%d of 200 before the stop, %d two seconds after the start", before, after)
		}
		time.Sleep(time.Minute)
		s.everythingArrived()
	})
}

func TestWhoseLimitsAnAddressCountsIn(t *testing.T) {
	t.Parallel()
	victim := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer victim.Close()
	allow, err := ParseAllowed(Loopback)
	if err != nil {
		t.Fatal(err)
	}
	zone := openZone(t)
	s := NewSender(SenderConfig{Allow: allow, Resolver: zone.resolver()})
	defer s.Close()
	port := victim.Listener.Addr().(*net.TCPAddr).Port
	for _, name := range []string{"loopback.example.com", "Loopback.Example.COM", "localhost", "127.0.0.1"} {
		address := fmt.Sprintf("http://%s:%d/%s", name, port, name)
		if a := s.Post(t.Context(), address, http.Header{}, nil); !a.Delivered() {
			t.Fatalf("%s: %+v", address, a)
		}
		expect(t, address, s.Host(address), "127.0.0.1")
	}
	for address, want := range map[string]string{
		"https://shop.example.com/a":        "shop.example.com",
		"https://SHOP.example.com:8443/b":   "shop.example.com",
		"http://shop.example.com":           "shop.example.com", // until it was connected to
		"https://93.184.1.1/a":              "93.184.1.1",
		"http://93.184.1.1:8080":            "93.184.1.1",
		"http://[::ffff:93.184.1.1]/":       "93.184.1.1",
		"https://[2606:2800:220:1::5]/":     "2606:2800:220:1::/64",
		"http://[2606:2800:220:1:9::7]:80/": "2606:2800:220:1::/64",
	} {
		expect(t, address, s.Host(address), want)
	}
}
