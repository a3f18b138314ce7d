package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"till"
)

// F36 on all four operators: the database of some time ago is put back, with
// payments and payouts open in it that were sent, paid and cancelled since, and
// others lost. One client sends what is unknown again; what one does not is found
// as strays in the statements, and given to it. The steps are those of the guide,
// and at the end the operators' books decide.
func TestRestoreOnEveryOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it starts servers for each operator")
	}
	t.Parallel()
	for name, engine := range backups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestoration(t, engine(t), "retries", "does not")
			r.start()
			r.open()
			r.placeAll("/payments", false)
			r.await("what is final in the backup", r.settled)

			// Open in the backup, and nobody has sent it yet.
			r.stop(syscall.SIGTERM)
			r.start("--role", "api")
			r.placeAll("/payments", false)
			r.placeAll("/payouts", false)
			cancelled := r.placeAll("/payouts", false)
			lostFrom := r.stopAndBackUp()

			// What will be lost: cancels, sends, new orders, the end of a key.
			r.start("--role", "api")
			r.cancel(cancelled)
			r.stop(syscall.SIGTERM)
			r.start()
			r.placeAll("/payments", true)
			r.placeAll("/payments", true, "mpesa", "254710001032", "254710101032") // these decline
			r.placeAll("/payouts", true)
			r.till(0, "key", "revoke", "--client", r.shops[0].client.String(), r.leakedID)
			r.await("what will be lost", r.settled)
			r.stop(syscall.SIGTERM)

			r.backup.putBack()
			r.reviewAndRestore(lostFrom)
			r.start()
			over := time.After(restoreWindow + time.Second)
			r.checkHeld()
			r.retry("/payments")
			r.await("what the operators can be asked about", func(sh *shop, o *placed) bool {
				return o.lost && (o.path == "/payouts" || !o.retried) || o.method == "mpesa" && o.path == "/payments" || r.settled(sh, o)
			})
			r.applyStatements()
			r.resolvePushes()
			<-over // what is held and was not found on the statement has no time left
			if told := r.till(0, "restored", "--release", "--by", "Awa", "--yes"); !strings.Contains(told, "new payouts are taken again") || !strings.Contains(told, "stray of mtnmomo") {
				t.Errorf("the release says %s", told)
			}
			r.retry("/payouts")
			r.await("everything", func(sh *shop, o *placed) bool { return o.lost && !o.retried || r.settled(sh, o) })
			r.stop(syscall.SIGTERM)
			r.attributeStrays()
			r.till(0, "verify")
			r.compareShops()
		})
	}
}

// A payment on MTN that was lost and is made again by the client's retry has
// another id than the one that MTN knows. It is credited, once.
func TestALostPaymentOnMTNIsCreditedOnce(t *testing.T) {
	t.Parallel()
	for name, engine := range backups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestoration(t, engine(t), "retries")
			r.start()
			r.open()
			lostFrom := r.stopAndBackUp()
			r.start()
			r.placeAll("/payments", true, "mtn_momo", "242065155001", "237671550010") // in Congo by MTN itself, in Cameroon by pawaPay
			r.await("the lost ones", r.settled)
			r.stop(syscall.SIGTERM)
			r.backup.putBack()
			r.till(0, "restored", "--secret-file", r.secretFile(), "--lost-from", lostFrom.String(), "--keys-reviewed")
			r.start()
			r.retry("/payments")
			r.await("the retries", r.settled)
			r.stop(syscall.SIGTERM)
			r.till(0, "verify")
			r.compareShops()
			for _, o := range r.shops[0].orders {
				if p := r.standing(r.shops[0], o); p.status != "success" || p.attention {
					t.Errorf("%s: %+v", o.phone, p)
				}
			}
		})
	}
}

// cancel takes payouts back.
func (r *restoration) cancel(orders []*placed) {
	r.t.Helper()
	for i, o := range orders {
		r.key = r.shops[i/len(markets)].key
		req, _ := http.NewRequestWithContext(r.t.Context(), "POST", "http://"+r.addr+"/v1/payouts/"+o.id+"/cancel", nil)
		req.Header.Set("X-Api-Key", r.key)
		a, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		a.Body.Close()
		if o.cancelled = a.StatusCode == http.StatusOK; !o.cancelled {
			r.t.Fatalf("a payout that nobody has sent is not cancelled: %s", a.Status)
		}
	}
}

// reviewAndRestore says that the database is old. The first time it does not come
// to its end: a key works again that was revoked in the lost time.
func (r *restoration) reviewAndRestore(lostFrom till.Time) {
	r.t.Helper()
	args := []string{"restored", "--secret-file", r.secretFile(), "--lost-from", lostFrom.String()}
	if told := r.till(1, args...); !strings.Contains(told, r.leakedID) || !strings.Contains(told, "--keys-reviewed") {
		r.t.Errorf("the key that was revoked is not listed: %s", told)
	}
	r.till(1, "restored", "--release", "--by", "Awa") // not before the keys were looked at
	r.till(0, "key", "revoke", "--client", r.shops[0].client.String(), r.leakedID)
	if told := r.till(0, append(args, "--keys-reviewed")...); strings.Contains(told, r.leakedID) || !strings.Contains(told, "goes on with what was begun") {
		r.t.Errorf("the second time it says %s", told)
	}
}

// checkHeld checks that no new payouts are taken, and no revoked key.
func (r *restoration) checkHeld() {
	r.t.Helper()
	for _, sh := range r.shops {
		for _, o := range sh.orders {
			if o.path != "/payouts" {
				continue
			}
			if !o.lost { // a replay has its answer as ever
				r.send(sh, o, http.StatusAccepted)
			} else if body := r.send(sh, o, http.StatusServiceUnavailable); !strings.Contains(body, `"payouts_held"`) {
				r.t.Errorf("a new payout: %s", body)
			}
		}
	}
	leaked := &shop{name: "a thief", key: r.leaked}
	r.send(leaked, &placed{order: r.shops[0].orders[0].order}, http.StatusUnauthorized)
}

// retry sends what is lost again, for the shops that do.
func (r *restoration) retry(path string) {
	r.t.Helper()
	for _, sh := range r.shops {
		for _, o := range sh.orders {
			if o.lost && o.path == path && sh.retries {
				r.send(sh, o, http.StatusAccepted)
				o.retried = true
			}
		}
	}
}

// resolvePushes does what a person does with M-Pesa's statement: the money of what
// was open in the backup, and of what a client has asked for again, is found by
// the number and brought to the payment. None of them has been sent a second time.
func (r *restoration) resolvePushes() {
	r.t.Helper()
	r.await("pushes are on the attention list", func(sh *shop, o *placed) bool {
		p := r.standing(sh, o)
		return o.method != "mpesa" || o.path != "/payments" || p == nil || p.final || p.attention
	})
	for _, sh := range r.shops {
		for _, o := range sh.orders {
			p := r.standing(sh, o)
			if o.method != "mpesa" || o.path != "/payments" || p == nil || p.final {
				continue
			}
			entries, moved := r.entriesOf(o)
			if len(entries) > 1 {
				r.t.Errorf("%s of %s was asked %d times", o.phone, sh.name, len(entries))
			}
			if moved > 0 || !o.lost {
				r.resolve(p, entries[0], moved > 0)
			}
		}
	}
}
