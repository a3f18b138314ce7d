package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/provider"
	"till/store"
)

// The names of the cases are sentences of the contract's section on states:
// each line protects the sentence it is named by.

const start = till.Time(1_800_000_000_000_000)

var expires = start.Add(60 * time.Second)

var traits = provider.Traits{
	ClientReference: true, ApprovalWindow: time.Minute, SubmitTimeout: time.Second, CheckTimeout: time.Second,
	NotFoundDelay: 10 * time.Second, Poll: 2 * time.Second, PollMax: 60 * time.Second, Grace: 5 * time.Second,
	LateReads: []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
}

var errTimeout = errors.New("no answer")

func TestNext(t *testing.T) {
	t.Parallel()
	withoutReference := traits
	withoutReference.ClientReference = false
	redirect, askedRedirect := withoutReference, traits
	redirect.Redirect, askedRedirect.Redirect = true, true
	before, at, after := expires-1, expires, expires.Add(24*time.Hour)
	for _, c := range []struct {
		name  string
		step  store.Step
		final bool
		t     provider.Traits
		now   till.Time
		want  Action
	}{
		{"a payment that was never sent is sent", store.Step{}, false, traits, before, Submit},
		{"a payment that was never sent is sent to an operator without references too", store.Step{}, false, withoutReference, before, Submit},
		{"no send starts at expires_at", store.Step{}, false, traits, at, Abandon},
		{"no send starts after expires_at", store.Step{}, false, traits, after, Abandon},

		{"a send that may have begun is asked about, not repeated", store.Step{Sends: 1}, false, traits, before, Check},
		{"a send that may have begun is asked about after the window too", store.Step{Sends: 1}, false, traits, after, Check},
		{"a redirect whose answer was lost is made again: nobody was shown an address", store.Step{Kind: till.SubjectPayment, Sends: 1}, false, redirect, before, Submit},
		{"a redirect is not made again after the window", store.Step{Kind: till.SubjectPayment, Sends: 1}, false, redirect, at, Check},
		{"a redirect is not made again once the operator has answered", store.Step{Kind: till.SubjectPayment, Sends: 1, Acked: true}, false, redirect, before, Check},
		{"a redirect is not made again once the operator has given a handle", store.Step{Kind: till.SubjectPayment, Sends: 1, Handle: "h"}, false, redirect, before, Check},
		{"a redirect is not made again once the operator has called back", store.Step{Kind: till.SubjectPayment, Sends: 1, WakeSeq: 1}, false, redirect, before, Check},
		{"a redirect is not made again after a restore: its address may have been shown", store.Step{Kind: till.SubjectPayment, Sends: 1, Restored: true}, false, redirect, before, Check},
		{"a redirect is not made for ever", store.Step{Kind: till.SubjectPayment, Sends: maxSends}, false, redirect, before, Check},
		{"a redirect is asked about where the operator looks up our reference", store.Step{Kind: till.SubjectPayment, Sends: 1}, false, askedRedirect, before, Check},
		{"a push is never made again unasked", store.Step{Kind: till.SubjectPayment, Sends: 1}, false, withoutReference, before, Check},
		{"a payout is never made again unasked", store.Step{Kind: till.SubjectPayout, Sends: 1}, false, redirect, before, Check},
		{"a redirect that has ended is only read", store.Step{Kind: till.SubjectPayment, Sends: 1}, true, redirect, before, Check},

		{"one not found proves nothing", store.Step{Sends: 1, NotFoundReads: 1}, false, traits, before, Check},
		{"one not found proves nothing after the window either", store.Step{Sends: 1, NotFoundReads: 1}, false, traits, after, Check},
		{"an acknowledged send is only asked about", store.Step{Sends: 1, Acked: true}, false, traits, before, Check},
		{"still open keeps the payment open for ever", store.Step{Sends: 1, Acked: true}, false, traits, after, Check},
		{"an acknowledged send is never taken for absent", store.Step{Sends: 1, Acked: true, NotFoundReads: 2}, false, traits, before, Check},
		{"an acknowledged send is never taken for absent after the window either", store.Step{Sends: 1, Acked: true, NotFoundReads: 2}, false, traits, after, Check},

		{"what the operator was seen to hold is not sent, although nobody here has sent it", store.Step{Acked: true}, false, traits, before, Check},
		{"what the operator was seen to hold does not end, although nobody here has sent it", store.Step{Acked: true}, false, traits, after, Check},

		{"proven absent: the same reference may be sent again", store.Step{Sends: 1, NotFoundReads: 2}, false, traits, before, Submit},
		{"proven absent again: it may be sent again", store.Step{Sends: 2, NotFoundReads: 2}, false, traits, before, Submit},
		{"an operator that would not notice a repetition is never sent to twice", store.Step{Sends: 1, NotFoundReads: 2}, false, withoutReference, before, Check},
		{"a payment that was sent three times is not sent again", store.Step{Sends: 3, NotFoundReads: 2}, false, traits, before, Check},
		{"proven absent when its window closes: it ends", store.Step{Sends: 1, NotFoundReads: 2}, false, traits, at, Abandon},
		{"proven absent when its window closes at an operator without references: it ends", store.Step{Sends: 1, NotFoundReads: 2}, false, withoutReference, at, Abandon},
		{"a payout proven absent when its window closes: it ends", store.Step{Kind: till.SubjectPayout, Sends: 1, NotFoundReads: 2}, false, traits, at, Abandon},
		{"a payout that was sent to an operator without references is asked about for ever", store.Step{Kind: till.SubjectPayout, Sends: 1, NotFoundReads: 2}, false, withoutReference, after, Check},
		{"a payout that was never sent ends with its window", store.Step{Kind: till.SubjectPayout}, false, withoutReference, at, Abandon},

		{"a send that left nothing is made again", store.Step{SendStartedAt: start}, false, traits, before, Submit},
		{"a send that left nothing, and that the operator has called back about, is asked about", store.Step{SendStartedAt: start, WakeSeq: 1}, false, traits, before, Check},
		{"and does not end with its window", store.Step{SendStartedAt: start, WakeSeq: 1}, false, traits, after, Check},
		{"proven absent, and called back about since: it is asked about", store.Step{Sends: 1, NotFoundReads: 2, NotFoundAt: start, WakeSeq: 1}, false, traits, before, Check},
		{"and does not end with its window either", store.Step{Sends: 1, NotFoundReads: 2, NotFoundAt: start, WakeSeq: 1}, false, traits, after, Check},
		{"proven absent again since it was called back about: it ends", store.Step{Sends: 1, NotFoundReads: 3, NotFoundAt: start + 2, WakeSeq: 1, NotFoundSeq: 1}, false, traits, after, Abandon},

		{"a callback before the send says nothing about it, whatever the times are", store.Step{SendStartedAt: start, WakeSeq: 1, SentSeq: 1, CallbackDueAt: start + 1}, false, traits, before, Submit},
		{"one after it does", store.Step{SendStartedAt: start, WakeSeq: 2, SentSeq: 1, CallbackDueAt: start - 1}, false, traits, before, Check},
		{"a refused send is made again", store.Step{SendStartedAt: start, Refusals: 1}, false, traits, before, Submit},
		{"after the window it is asked about first", store.Step{SendStartedAt: start, Refusals: 1}, false, traits, after, Check},
		{"and ends once a read found nothing", store.Step{SendStartedAt: start, Refusals: 1, NotFoundReads: 1}, false, traits, after, Abandon},
		{"a payout, too, at any operator", store.Step{Kind: till.SubjectPayout, SendStartedAt: start, Refusals: 1}, false, withoutReference, after, Check},
		{"a payment at an operator that has nothing to be asked by ends", store.Step{SendStartedAt: start, Refusals: 1}, false, withoutReference, after, Abandon},

		{"what was open when an old database was put back is asked about", store.Step{Sends: 1, Restored: true}, false, traits, before, Check},
		{"and after its window, too", store.Step{Sends: 1, Restored: true}, false, traits, after, Check},
		{"and is not taken for unsent", store.Step{Restored: true}, false, traits, after, Check},
		{"and is not sent, even if it is proven absent", store.Step{Sends: 1, NotFoundReads: 2, Restored: true}, false, traits, before, Check},
		{"and ends once it is proven absent and its window is over", store.Step{Sends: 1, NotFoundReads: 2, Restored: true}, false, traits, at, Abandon},
		{"but a payout only where not found is a proof", store.Step{Kind: till.SubjectPayout, Sends: 1, NotFoundReads: 2, Restored: true}, false, withoutReference, after, Check},

		{"a final is only read, for late money", store.Step{Sends: 1, Acked: true, LateFrom: start}, true, traits, after, Check},
		{"a final that was never sent is only read", store.Step{}, true, traits, before, Check},
		{"a final that was never sent is only read after its window", store.Step{}, true, traits, after, Check},
		{"a final that was proven absent is only read", store.Step{Sends: 1, NotFoundReads: 2}, true, traits, before, Check},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Next(&c.step, &Instruction{ExpiresAt: expires, Final: c.final}, c.t, c.now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Whatever a step looks like, nothing is sent to an operator that may hold
// the request already, nor after the window: the whole space, not examples.
func TestNextNeverSendsWhatMayBeHeld(t *testing.T) {
	t.Parallel()
	kinds := []till.SubjectKind{till.SubjectPayment, till.SubjectPayout}
	for _, final := range []bool{false, true} {
		for _, reference := range []bool{false, true} {
			for _, acked := range []bool{false, true} {
				for sends := range 4 {
					for absent := range 16 {
						for _, now := range []till.Time{start, expires - 1, expires, expires + 1, expires.Add(24 * time.Hour)} {
							tr := traits
							tr.ClientReference = reference
							restored, absent := absent >= 8, absent%8
							s := store.Step{Kind: kinds[absent%2], Sends: sends, Acked: acked, NotFoundReads: absent / 2, Restored: restored}
							got := Next(&s, &Instruction{ExpiresAt: expires, Final: final}, tr, now)
							open := !final && now < expires
							first := sends == 0 && !acked
							again := sends > 0 && sends < 3 && !acked && absent/2 >= 2 && reference
							if may := open && !restored && (first || again); (got == Submit) != may {
								t.Errorf("%+v, final %v, reference %v, at %s: got %s", s, final, reference, now, got)
							}
							if got == Abandon && !mayAbandon(&s, expires, tr, now) {
								t.Errorf("%+v at %s is to be abandoned, and may not be", s, now)
							}
						}
					}
				}
			}
		}
	}
}

func TestMayAbandon(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		step *store.Step
		now  till.Time
		want bool
	}{
		{"provably never sent, and its window is closed", &store.Step{}, expires, true},
		{"provably never sent, but its window is open", &store.Step{}, expires - 1, false},
		{"proven absent, and its window is closed", &store.Step{Sends: 1, NotFoundReads: 2}, expires, true},
		{"proven absent, but its window is open", &store.Step{Sends: 1, NotFoundReads: 2}, expires - 1, false},
		{"one not found is no proof", &store.Step{Sends: 1, NotFoundReads: 1}, expires, false},
		{"a send may have arrived: unknown never becomes failed", &store.Step{Sends: 1}, expires.Add(24 * time.Hour), false},
		{"an acknowledged send is not absent", &store.Step{Sends: 1, Acked: true, NotFoundReads: 2}, expires.Add(24 * time.Hour), false},
		{"what the operator was seen to hold was sent", &store.Step{Acked: true}, expires.Add(24 * time.Hour), false},
		{"many unanswered calls prove nothing", &store.Step{Sends: 3, Calls: 1000, BackoffSteps: 9}, expires.Add(365 * 24 * time.Hour), false},
		{"a gateway's refusal ends nothing before a read", &store.Step{SendStartedAt: start, Refusals: 1}, expires, false},
		{"a read that found nothing since ends it", &store.Step{SendStartedAt: start, Refusals: 1, NotFoundReads: 1}, expires, true},
		{"what left nothing of ours needs no read", &store.Step{SendStartedAt: start}, expires, true},
		{"without a step nothing is known", nil, expires.Add(24 * time.Hour), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := mayAbandon(c.step, expires, traits, c.now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	sent := store.Step{Sends: 1, LeaseVersion: 3, SendStartedAt: start + 5, SendDeadline: start.Add(20 * time.Second)}
	settled := sent.SendDeadline.Add(traits.NotFoundDelay)
	with := func(s store.Step, f func(s *store.Step)) store.Step { f(&s); return s }
	once := with(sent, func(s *store.Step) { s.NotFoundReads, s.NotFoundAt = 1, settled+2 })
	again := once.NotFoundAt.Add(traits.NotFoundDelay)
	answer := func(action Action, o provider.Outcome, started till.Time) Answer {
		return Answer{Action: action, LeaseVersion: 3, Started: started, Ended: started + 1, Result: provider.Result{Outcome: o}}
	}
	failing := func(a Answer) Answer { a.Err = errTimeout; return a }
	unsent := func(a Answer) Answer { a.Err = fmt.Errorf("%w: dial refused", provider.ErrNotSent); return a }
	refused := func(a Answer) Answer { a.Err = fmt.Errorf("x: %w", &provider.Refusal{Err: errTimeout}); return a }
	over := func(a Answer) Answer { a.Err = errLeaseOver; return a }
	under := func(version int64, a Answer) Answer { a.LeaseVersion = version; return a }
	counted := func(s *store.Step, a Answer) { s.Calls++; s.CheckedAt = a.Ended }

	type row struct {
		name string
		step store.Step
		a    Answer
		want func(s *store.Step)
	}
	rows := []row{
		{"an error is counted and proves nothing", sent, failing(answer(Check, "", settled+1)), nil},
		{"an error beside a not found proves nothing", sent, failing(answer(Check, provider.NotFound, settled+1)), nil},
		{"a not found after the settle time counts", sent, answer(Check, provider.NotFound, settled+1), func(s *store.Step) { s.NotFoundReads, s.NotFoundAt = 1, settled+2 }},
		{"a second not found that began the settle time after the first agrees", once, answer(Check, provider.NotFound, again), func(s *store.Step) { s.NotFoundReads, s.NotFoundAt = 2, again+1 }},
		{"a second not found that began sooner may be the word of the same replica", once, answer(Check, provider.NotFound, again-1), nil},
		{"a not found that was counted before the latest send says nothing about it", with(once, func(s *store.Step) { s.SendDeadline = again }),
			answer(Check, provider.NotFound, again.Add(traits.NotFoundDelay)+1), func(s *store.Step) { s.NotFoundReads, s.NotFoundAt = 1, again.Add(traits.NotFoundDelay)+2 }},
		{"a not found of which nobody wrote down when is asked for again", with(sent, func(s *store.Step) { s.NotFoundReads = 1 }), answer(Check, provider.NotFound, settled+1),
			func(s *store.Step) { s.NotFoundReads, s.NotFoundAt = 1, settled+2 }},
		{"a not found that is recorded twice counts once", with(sent, func(s *store.Step) { s.NotFoundReads, s.CheckedAt = 1, settled+2 }), answer(Check, provider.NotFound, settled+1), nil},
		{"a not found that began before the last one ended does not count", with(sent, func(s *store.Step) { s.NotFoundReads, s.CheckedAt = 1, settled+1 }), answer(Check, provider.NotFound, settled+1), nil},
		{"a not found that began at the settle time does not count", sent, answer(Check, provider.NotFound, settled), nil},
		{"a not found that began before the settle time does not count", sent, answer(Check, provider.NotFound, start), nil},
		{"a not found to a send does not count", with(sent, func(s *store.Step) { s.SendDeadline = 1 }), answer(Submit, provider.NotFound, settled+1), nil},
		{"a not found after an acknowledgement does not count", with(sent, func(s *store.Step) { s.Acked = true }), answer(Check, provider.NotFound, settled+1), nil},
		{"a question that was taken proves nothing", with(sent, func(s *store.Step) { s.NotFoundReads = 1 }), answer(Check, provider.AnswerPending, settled+1), nil},
		{"a rejection is no evidence that the operator holds it", sent, answer(Submit, provider.Rejected, start), func(s *store.Step) { s.SendDeadline = start + 1 }},
		{"the end of a send is the end of its bytes", sent, failing(answer(Submit, "", start+5)), func(s *store.Step) { s.SendDeadline = start + 6 }},
		{"a send that ends after its deadline does not move it", sent, failing(answer(Submit, "", sent.SendDeadline)), nil},
		{"the end of an older send says nothing about the latest", sent, failing(under(2, answer(Submit, "", start+5))), nil},
		{"a first send of which nothing left us was none", sent, unsent(answer(Submit, "", start+5)), func(s *store.Step) { s.Sends, s.SendDeadline = 0, start+6 }},
		{"a later one was", with(sent, func(s *store.Step) { s.Sends = 2 }), unsent(answer(Submit, "", start+5)), func(s *store.Step) { s.SendDeadline = start + 6 }},
		{"that is a fact, whoever has claimed it since to ask", sent, unsent(under(2, answer(Submit, "", start+5))), func(s *store.Step) { s.Sends = 0 }},
		{"not if it was told before, and another's send is the first now", with(sent, func(s *store.Step) { s.SendStartedAt = start + 7 }),
			unsent(under(2, answer(Submit, "", start+5))), nil},
		{"a lease that was over before the send began: it was none", sent, over(answer(Submit, "", start+5)), func(s *store.Step) { s.Sends, s.SendDeadline = 0, start+6 }},
		{"not if the operator was seen to hold it", with(sent, func(s *store.Step) { s.Acked = true }), unsent(answer(Submit, "", start+5)), func(s *store.Step) { s.SendDeadline = start + 6 }},
		{"a first send that the operator refused to take was none", sent, refused(answer(Submit, "", start+5)), func(s *store.Step) { s.Sends, s.SendDeadline, s.Refusals = 0, start+6, 1 }},
		{"a refusal of a later send says nothing about the first", with(sent, func(s *store.Step) { s.Sends = 2 }), refused(answer(Submit, "", start+5)), func(s *store.Step) { s.SendDeadline = start + 6 }},
		{"a refusal counts for nothing if another has claimed it since", sent, refused(under(2, answer(Submit, "", start+5))), nil},
		{"a refusal of what the operator was seen to hold counts for nothing", with(sent, func(s *store.Step) { s.Acked = true }), refused(answer(Submit, "", start+5)), func(s *store.Step) { s.SendDeadline = start + 6 }},
		{"whoever calls back about it has taken it, though it was refused", with(sent, func(s *store.Step) { s.WakeSeq = 1 }), refused(answer(Submit, "", start+5)), func(s *store.Step) { s.SendDeadline = start + 6 }},
		{"a refusal of a send of the lost time says nothing about this one, though versions are counted again", sent, refused(answer(Submit, "", start+4)), func(s *store.Step) { s.SendDeadline = start + 5 }},
		{"a not found that was read before a callback is no proof after it", with(once, func(s *store.Step) { s.WakeSeq, s.NotFoundSeq = 2, 1 }), answer(Check, provider.NotFound, again),
			func(s *store.Step) { s.NotFoundReads, s.NotFoundAt, s.NotFoundSeq = 2, again+1, 0 }},
		{"a refused check says nothing about the send", sent, refused(answer(Check, "", start+5)), nil},
		{"a check that was not sent says nothing about the send", sent, unsent(answer(Check, "", start+5)), nil},
		{"a check does not end a send", sent, answer(Check, provider.NotFound, start+5), nil},
		{"an older answer does not turn the clock back", with(sent, func(s *store.Step) { s.CheckedAt = settled.Add(time.Hour) }),
			failing(answer(Check, "", start)), func(s *store.Step) { s.CheckedAt = settled.Add(time.Hour) }},
	}
	for _, o := range []provider.Outcome{provider.Accepted, provider.Duplicate, provider.Open, provider.Unrecognised, provider.Success, provider.Failed, provider.Expired} {
		rows = append(rows,
			row{"evidence that the operator holds it: " + string(o), with(sent, func(s *store.Step) { s.NotFoundReads = 2 }),
				answer(Check, o, settled+1), func(s *store.Step) { s.Acked, s.NotFoundReads = true, 0 }},
			row{"a fact holds whoever holds the lease: " + string(o), sent,
				under(1, answer(Submit, o, start)), func(s *store.Step) { s.Acked = true }})
	}
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, want := c.step, c.step
			counted(&want, c.a)
			if c.want != nil {
				c.want(&want)
			}
			noteAnswer(&got, &c.a, traits, c.a.Ended)
			if d := cmp.Diff(got, want); d != "" {
				t.Errorf("(-got +want)\n%s", d)
			}
		})
	}
}

func TestRejectionIsFinal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		step *store.Step
		a    Answer
		want bool
	}{
		{"a rejection that answers the first and only send ends the payment", &store.Step{Sends: 1, LeaseVersion: 1}, Answer{Action: Submit, LeaseVersion: 1}, true},
		{"on a later send a rejection means ask", &store.Step{Sends: 2, LeaseVersion: 2}, Answer{Action: Submit, LeaseVersion: 2}, false},
		{"a rejection of the first send after a second has begun means ask", &store.Step{Sends: 2, LeaseVersion: 2}, Answer{Action: Submit, LeaseVersion: 1}, false},
		{"a rejection after somebody else took the step over means ask", &store.Step{Sends: 1, LeaseVersion: 2}, Answer{Action: Submit, LeaseVersion: 1}, false},
		{"a rejection of what the operator was seen to hold means ask", &store.Step{Sends: 1, LeaseVersion: 1, Acked: true}, Answer{Action: Submit, LeaseVersion: 1}, false},
		{"a rejection of a read is no rejection of a send", &store.Step{Sends: 1, LeaseVersion: 1}, Answer{Action: Check, LeaseVersion: 1}, false},
		{"a rejection of what the operator has called back about means ask", &store.Step{Sends: 1, LeaseVersion: 1, WakeSeq: 1}, Answer{Action: Submit, LeaseVersion: 1}, false},
		{"a callback before the send says nothing about it", &store.Step{Sends: 1, LeaseVersion: 1, WakeSeq: 1}, Answer{Action: Submit, LeaseVersion: 1, WakeSeq: 1}, true},
		{"a person does not reject", &store.Step{Sends: 1, LeaseVersion: 1}, Answer{Action: Resolve, LeaseVersion: 1}, false},
		{"without a step nothing is known", nil, Answer{Action: Submit, LeaseVersion: 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := rejectionIsFinal(c.step, &c.a); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestReschedule(t *testing.T) {
	t.Parallel()
	due, lease := start-1, start.Add(20*time.Second)
	overdue := expires.Add(traits.Grace)
	withoutReference := traits
	withoutReference.ClientReference = false
	held := store.Step{LeaseVersion: 3, WakeSeq: 5, DueAt: due, LeaseUntil: lease, Sends: 1}
	with := func(f func(s *store.Step)) store.Step { s := held; f(&s); return s }
	refusedFor := func(d time.Duration) Answer {
		return Answer{Action: Submit, LeaseVersion: 3, WakeSeq: 5, Err: &provider.Refusal{Err: errTimeout, RetryAfter: d}}
	}
	for _, c := range []struct {
		name string
		step store.Step
		a    Answer
		t    provider.Traits
		now  till.Time
		want func(s *store.Step)
	}{
		{"an open payment is asked about at the operator's pace", held, Answer{LeaseVersion: 3, WakeSeq: 5}, traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(traits.Poll), 0 }},
		{"an error is asked about again at the same pace", held, Answer{LeaseVersion: 3, WakeSeq: 5, Err: errTimeout}, traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(traits.Poll), 0 }},
		{"a callback that came meanwhile is not overlooked", held, Answer{LeaseVersion: 3, WakeSeq: 4}, traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start, 0 }},
		{"whoever lost the lease reschedules nothing", held, Answer{LeaseVersion: 2, WakeSeq: 5}, traits, start, nil},
		{"whoever lost the lease reschedules nothing for a callback either", held, Answer{LeaseVersion: 2, WakeSeq: 4}, traits, start, nil},
		{"a person's word reschedules nothing", held, Answer{Action: Resolve}, traits, start, nil},
		{"proven absent is sent again at once", with(func(s *store.Step) { s.NotFoundReads, s.NotFoundSeq = 2, 5 }), Answer{LeaseVersion: 3, WakeSeq: 5}, traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start, 0 }},
		{"one not found waits for the next", with(func(s *store.Step) { s.NotFoundReads = 1 }), Answer{LeaseVersion: 3, WakeSeq: 5}, traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(traits.Poll), 0 }},
		{"the read that completes the proof comes as soon as it counts", with(func(s *store.Step) { s.NotFoundReads, s.NotFoundAt = 1, start.Add(time.Second-traits.NotFoundDelay) }),
			Answer{LeaseVersion: 3, WakeSeq: 5}, traits, start, func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(time.Second), 0 }},
		{"an overdue one waits for that and no longer", with(func(s *store.Step) { s.NotFoundReads, s.NotFoundAt, s.BackoffSteps = 1, overdue, 3 }),
			Answer{LeaseVersion: 3, WakeSeq: 5}, traits, overdue + 1, func(s *store.Step) { s.DueAt, s.LeaseUntil, s.BackoffSteps = overdue.Add(traits.NotFoundDelay), 0, 4 }},
		{"proven absent where nothing can be sent again keeps the pace", with(func(s *store.Step) { s.NotFoundReads = 2 }), Answer{LeaseVersion: 3, WakeSeq: 5}, withoutReference, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(traits.Poll), 0 }},
		{"what was refused is sent again when the operator says", with(func(s *store.Step) { s.Sends = 0 }), refusedFor(7 * time.Second), traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(7*time.Second), 0 }},
		{"what may be sent again too late for the customer ends with the window", with(func(s *store.Step) { s.Sends = 0 }), refusedFor(time.Hour), traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = expires, 0 }},
		{"after the window what was refused ends at once", with(func(s *store.Step) { s.Sends = 0 }), refusedFor(time.Hour), traits, expires + 1,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = expires+1, 0 }},
		{"what was refused without a time keeps the pace", with(func(s *store.Step) { s.Sends = 0 }), refusedFor(0), traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(traits.Poll), 0 }},
		{"a second send that is refused is asked about at the pace", with(func(s *store.Step) { s.Sends = 2 }), refusedFor(7 * time.Second), traits, start,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = start.Add(traits.Poll), 0 }},
		{"within the grace the pace stays", held, Answer{LeaseVersion: 3, WakeSeq: 5}, traits, overdue,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = overdue.Add(traits.Poll), 0 }},
		{"after the grace it is asked ever more slowly", with(func(s *store.Step) { s.BackoffSteps = 2 }), Answer{LeaseVersion: 3, WakeSeq: 5}, traits, overdue + 1,
			func(s *store.Step) { s.DueAt, s.LeaseUntil, s.BackoffSteps = (overdue + 1).Add(4*traits.Poll), 0, 3 }},
		{"an overdue payment is never given up, however many calls failed", with(func(s *store.Step) { s.BackoffSteps, s.Calls = 5, 1<<30 }), Answer{LeaseVersion: 3, WakeSeq: 5, Err: errTimeout}, traits, expires.Add(365 * 24 * time.Hour),
			func(s *store.Step) {
				s.DueAt, s.LeaseUntil = (expires.Add(365 * 24 * time.Hour)).Add(traits.PollMax), 0
			}},
		{"a callback wakes an overdue payment at once", with(func(s *store.Step) { s.BackoffSteps = 5 }), Answer{LeaseVersion: 3, WakeSeq: 4}, traits, expires.Add(24 * time.Hour),
			func(s *store.Step) { s.DueAt, s.LeaseUntil = expires.Add(24*time.Hour), 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, want := c.step, c.step
			if c.want != nil {
				c.want(&want)
			}
			reschedule(&got, &c.a, expires, c.t, c.now)
			if d := cmp.Diff(got, want); d != "" {
				t.Errorf("(-got +want)\n%s", d)
			}
		})
	}
}

func TestOverdue(t *testing.T) {
	t.Parallel()
	end := expires.Add(traits.Grace)
	for now, want := range map[till.Time]bool{start: false, expires: false, expires + 1: false, end: false, end + 1: true, end.Add(24 * time.Hour): true} {
		if got := Overdue(expires, traits, now); got != want {
			t.Errorf("%s after expires_at: got %v, want %v", now.Sub(expires), got, want)
		}
	}
}

func TestPaceSlowsDownAndNeverStops(t *testing.T) {
	t.Parallel()
	s := &store.Step{}
	var got []time.Duration
	for range 9 {
		got = append(got, backoff(s, traits))
	}
	second := time.Second
	want := []time.Duration{2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 60 * second, 60 * second, 60 * second, 60 * second}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
	if s.BackoffSteps > 5 {
		t.Errorf("the pace was halved %d times; it must stay bounded, or the wait overflows", s.BackoffSteps)
	}
}

func TestBeginLate(t *testing.T) {
	t.Parallel()
	t.Run("a final that is not success is read again five minutes later, whoever holds the lease", func(t *testing.T) {
		t.Parallel()
		s := store.Step{LeaseVersion: 3, LeaseUntil: start.Add(20 * time.Second), BackoffSteps: 4, LateReads: 2, WakeSeq: 5, Sends: 1, Acked: true, Calls: 7}
		want := s
		want.DueAt, want.LateFrom, want.LateReads, want.BackoffSteps, want.LeaseUntil = start.Add(5*time.Minute), start, 0, 0, 0
		want.LeaseVersion++ // a claim that was decided before must fail
		beginLate(&s, traits, start)
		if d := cmp.Diff(s, want); d != "" {
			t.Errorf("(-got +want)\n%s", d)
		}
	})
	t.Run("an operator without late reads is not read again", func(t *testing.T) {
		t.Parallel()
		s := store.Step{DueAt: 7}
		beginLate(&s, provider.Traits{}, start)
		if s.DueAt != 7 || s.LateFrom != start {
			t.Errorf("got %+v", s)
		}
	})
}

func TestAfterLate(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) till.Time { return start.Add(d) }
	late := store.Step{LeaseVersion: 3, WakeSeq: 5, LateFrom: start, DueAt: at(5 * time.Minute), LeaseUntil: at(5*time.Minute + Lease), Sends: 1, Acked: true}
	with := func(f func(s *store.Step)) store.Step { s := late; f(&s); return s }
	answer := func(started till.Time) Answer {
		return Answer{Action: Check, LeaseVersion: 3, WakeSeq: 5, Started: started, Ended: started + 1, Result: provider.Result{Outcome: provider.Failed}}
	}
	and := func(a Answer, f func(a *Answer)) Answer { f(&a); return a }
	last := with(func(s *store.Step) { s.LateReads = 4 })
	for _, c := range []struct {
		name string
		step store.Step
		a    Answer
		done bool
		want func(s *store.Step)
	}{
		{"after the read at five minutes comes the one at an hour", late, answer(at(5 * time.Minute)), false,
			func(s *store.Step) { s.LateReads, s.DueAt, s.LeaseUntil = 1, at(time.Hour), 0 }},
		{"after the read at an hour comes the one at six", with(func(s *store.Step) { s.LateReads = 1 }), answer(at(time.Hour)), false,
			func(s *store.Step) { s.LateReads, s.DueAt, s.LeaseUntil = 2, at(6*time.Hour), 0 }},
		{"one read after a long silence stands for all that were due", late, answer(at(7 * time.Hour)), false,
			func(s *store.Step) { s.LateReads, s.DueAt, s.LeaseUntil = 3, at(24*time.Hour), 0 }},
		{"after the read at three days nothing is owed", last, answer(at(72 * time.Hour)), true,
			func(s *store.Step) { s.LateReads = 5 }},
		{"a read that began before it was due is not the one that is owed", last, answer(at(72*time.Hour) - 1), false,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = at(72*time.Hour), 0 }},
		{"an answer from before the end counts for nothing", late, answer(start - 1), false,
			func(s *store.Step) { s.DueAt, s.LeaseUntil = at(5*time.Minute), 0 }},
		{"a read without an answer is owed still", last, and(answer(at(72*time.Hour)), func(a *Answer) { a.Err = errTimeout }), false,
			func(s *store.Step) { s.DueAt, s.LeaseUntil, s.BackoffSteps = at(72*time.Hour+traits.Poll), 0, 1 }},
		{"a read that is answered by a callback is owed until that comes", last, and(answer(at(72*time.Hour)), func(a *Answer) { a.Result.Outcome = provider.AnswerPending }), false,
			func(s *store.Step) { s.DueAt, s.LeaseUntil, s.BackoffSteps = at(72*time.Hour+traits.Poll), 0, 1 }},
		{"a callback that came while we asked is read at once", last, and(answer(at(72*time.Hour)), func(a *Answer) { a.Result.Outcome, a.WakeSeq = provider.AnswerPending, 4 }), false,
			func(s *store.Step) { s.DueAt, s.LeaseUntil, s.BackoffSteps = at(72*time.Hour), 0, 1 }},
		{"an error of whoever lost the lease changes nothing", last, and(answer(at(72*time.Hour)), func(a *Answer) { a.Err, a.LeaseVersion = errTimeout, 2 }), false, nil},
		{"an answer after errors brings the pace back", with(func(s *store.Step) { s.BackoffSteps = 4 }), answer(at(5 * time.Minute)), false,
			func(s *store.Step) { s.LateReads, s.DueAt, s.LeaseUntil, s.BackoffSteps = 1, at(time.Hour), 0, 0 }},
		{"a callback that came meanwhile is read for at once", late, and(answer(at(5*time.Minute)), func(a *Answer) { a.WakeSeq = 4 }), false,
			func(s *store.Step) { s.LateReads, s.DueAt, s.LeaseUntil = 1, at(5*time.Minute), 0 }},
		{"a callback during the last read is read for once more", last, and(answer(at(72*time.Hour)), func(a *Answer) { a.WakeSeq = 4 }), false,
			func(s *store.Step) { s.LateReads, s.DueAt, s.LeaseUntil = 5, at(72*time.Hour), 0 }},
		{"a fact counts whoever holds the lease, but does not reschedule", late, and(answer(at(5*time.Minute)), func(a *Answer) { a.LeaseVersion = 2 }), false,
			func(s *store.Step) { s.LateReads = 1 }},
		{"a success is read once", with(func(s *store.Step) { s.LateFrom, s.LateReads = 0, 5 }), answer(at(time.Hour)), true, nil},
		{"a success of an operator that is read no more is read once", with(func(s *store.Step) { s.LateFrom, s.LateReads = 0, 1 }), answer(at(time.Hour)), true,
			func(s *store.Step) { s.LateReads = 5 }},
		{"a callback while a success is read is read for a second later", with(func(s *store.Step) {
			s.LateFrom, s.LateReads, s.CallbackDueAt = 0, 5, at(time.Hour+store.MinCallbackInterval)
		}),
			and(answer(at(time.Hour)), func(a *Answer) { a.WakeSeq = 4 }), false, func(s *store.Step) { s.DueAt, s.LeaseUntil = at(time.Hour+time.Second), 0 }},
		{"a payment woken long after is read once", with(func(s *store.Step) { s.LateReads = 5 }), answer(at(30 * 24 * time.Hour)), true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, want := c.step, c.step
			if c.want != nil {
				c.want(&want)
			}
			if done := nextLateRead(&got, &c.a, traits, c.a.Started); done != c.done {
				t.Errorf("done is %v, want %v", done, c.done)
			}
			if d := cmp.Diff(got, want); d != "" {
				t.Errorf("(-got +want)\n%s", d)
			}
		})
	}
}
