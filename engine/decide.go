package engine

import (
	"errors"
	"time"

	"till"
	"till/provider"
	"till/store"
)

// Lease is how long a claimed step belongs to its holder, unless the configuration says
// less. A dead instance's work resumes after it.
const Lease = 20 * time.Second

// notFoundProof is how many agreeing "not found" reads prove that a request never arrived.
// Each begins at least the settle time after the one before, so that one lagging replica of
// the operator does not count twice.
const notFoundProof = 2

// maxSends is how often one payment is sent. Each re-send moves the end of the window.
// Without a limit, an operator that refuses each send and then finds nothing would keep a
// payment open for ever.
const maxSends = 3

// maxHandle is the greatest length of an operator's id of a request. A longer one is
// ignored.
const maxHandle = provider.MaxHandle

// unsent reports whether nothing was ever sent. It is false if the operator was seen to
// hold the request. It is false after a restore, because the request may have been sent
// since the backup. It is false if the operator has called back since a send that seemed to
// leave nothing. Callbacks are counted: times do not show what came first, because clocks
// are set.
func unsent(s *store.Step) bool {
	return s.Sends == 0 && !s.Acked && !s.Restored && (s.SendStartedAt.IsZero() || s.WakeSeq == s.SentSeq)
}

// Unsent reports whether nothing was ever sent for a step.
func Unsent(s *store.Step) bool { return unsent(s) }

// provenNotFound reports whether a sent request is proven absent. After a callback, one
// more read has to agree.
func provenNotFound(s *store.Step) bool {
	return !s.Acked && s.NotFoundReads >= notFoundProof && s.WakeSeq == s.NotFoundSeq
}

// refusalUnread reports whether a send that left us was refused by the operator's gateway,
// and no read since the settle time has found nothing. A gateway may refuse what it passes
// on, so its word alone ends nothing. A payment whose operator does not look up our
// reference ends all the same: there is nothing to ask by.
func refusalUnread(s *store.Step, t provider.Traits) bool {
	return s.Refusals > 0 && s.NotFoundReads == 0 && (s.Kind == till.SubjectPayout || t.ClientReference)
}

// Cancellable reports whether a payout with this step was provably not sent and is not
// about to be. A payout whose send left nothing is sent again at any moment, unless it is
// held.
func Cancellable(s *store.Step) bool {
	return s != nil && unsent(s) && (s.SendStartedAt.IsZero() || s.HeldAt != 0)
}

// mayResend reports whether a request that is proven absent may be sent again: only to an
// operator that would notice a duplicate. What was open at a restore is not sent again. It
// may have ended since the backup, and its client may know.
func mayResend(s *store.Step, t provider.Traits) bool {
	return t.ClientReference && s.Sends < maxSends && !s.Restored
}

// MarkRestored marks the step of a request that was open at a restore: it may have been
// sent. What is known of earlier sends is as old as the backup, so absence has to be proven
// again. An instance that claimed the step before the restore may send until its lease
// ends.
func MarkRestored(s *store.Step, connection string, now till.Time) {
	s.Restored = true
	s.Sends = max(s.Sends, 1)
	if s.SendStartedAt.IsZero() {
		s.SendStartedAt = now
	}
	s.SendDeadline = max(s.SendDeadline, now.Add(Lease))
	s.NotFoundReads = 0
	s.LeaseVersion++ // a claim that was decided before this must fail
	s.DueAt = now
	s.Lane = laneOf(connection, s, false, provider.Traits{})
}

// Action is what to do for a due step.
type Action string

// The actions.
const (
	Submit  Action = "submit"  // send the request (again)
	Check   Action = "check"   // read its state
	Abandon Action = "abandon" // it never reached the operator and its window is over
	Hold    Action = "hold"    // do not send it while it is held
	Resolve Action = "resolve" // a person brings the operator's decision
	Notice  Action = "notice"  // no instance claims it: open a case
)

// calls reports whether the action calls the operator.
func (a Action) calls() bool { return a == Submit || a == Check }

// Next decides what to do about a due step. These lines prevent double charging; each gives
// its reason.
func Next(s *store.Step, j *Instruction, t provider.Traits, now till.Time) Action {
	switch {
	// It has ended. What is left are reads for late money.
	case j.Final:
		return Check
	// Nothing was sent that the operator took. Sending is safe, but not after the
	// customer's time is over.
	case unsent(s) && now < j.ExpiresAt:
		return Submit
	// Its gateway refused a send that had left us. The operator is asked once before that
	// is believed.
	case unsent(s) && refusalUnread(s, t):
		return Check
	case unsent(s):
		return Abandon
	// Nobody can pay without the address in the answer, and no answer has come: whatever the
	// send left at the operator, nobody was shown it. The operator cannot be asked about it.
	case now < j.ExpiresAt && shownToNobody(s, t):
		return Submit
	// It was sent, and the operator holds it or may hold it.
	case !provenNotFound(s):
		return Check
	// Proven absent: two agreeing reads after the settle time, and no send was ever
	// acknowledged. The same reference may be sent once more.
	case now < j.ExpiresAt && mayResend(s, t):
		return Submit
	case now < j.ExpiresAt || !provable(s, t):
		return Check
	}
	return Abandon
}

// shownToNobody reports whether a send that may have reached the operator can have made nothing
// that anybody could pay, though the operator cannot be asked by our reference. It has called
// back about nothing, and it gave no handle. Before a restore the address may have been shown.
func shownToNobody(s *store.Step, t provider.Traits) bool {
	return t.Redirect && !t.ClientReference && s.Kind == till.SubjectPayment && !s.Acked && s.Handle == "" && !s.Restored &&
		s.Sends < maxSends && s.WakeSeq == s.SentSeq
}

// provable reports whether "not found" proves that nothing was sent. An operator that does
// not look up our reference may have paid under an id of its own. Money that may have left
// is never given back on such an answer.
func provable(s *store.Step, t provider.Traits) bool {
	return s.Kind != till.SubjectPayout || t.ClientReference
}

// laneOf returns the lane of a step: that of the operation that it most likely needs next.
func laneOf(connection string, s *store.Step, final bool, t provider.Traits) string {
	if !final && (unsent(s) || shownToNobody(s, t) || provenNotFound(s) && mayResend(s, t)) {
		return store.Lane(connection, operation(s.Kind, Submit))
	}
	return store.Lane(connection, operation(s.Kind, Check))
}

// mayAbandon reports whether a payment with this step can end without the operator's
// answer: it was provably never sent, or is proven absent, and no send can start any more.
func mayAbandon(s *store.Step, expiresAt till.Time, t provider.Traits, now till.Time) bool {
	if s == nil || now < expiresAt {
		return false
	}
	if unsent(s) {
		held := s.Kind == till.SubjectPayout && s.HeldAt != 0 // then its window does not run
		return !held && !refusalUnread(s, t)
	}
	return provenNotFound(s) && provable(s, t)
}

// noteAnswer records on a step what an answer shows, at now. These are facts: they hold
// whichever instance has the lease.
func noteAnswer(s *store.Step, a *Answer, t provider.Traits, now till.Time) {
	last := s.CheckedAt
	s.Calls++
	s.CheckedAt = max(s.CheckedAt, a.Ended)
	if a.Action == Submit && a.LeaseVersion == s.LeaseVersion && now < s.SendDeadline && !errors.Is(a.Err, errPanicked) {
		// The call is over: nothing of it is sent from here on.
		s.SendDeadline = now
	}
	keepHandle(s, a, t, last)
	if a.Err != nil {
		if neverSent(s, a) {
			s.Sends = 0 // SendStartedAt stays: its attempt has the reference
			if !errors.Is(a.Err, provider.ErrNotSent) {
				s.Refusals++
			}
		}
		return
	}
	if a.Result.Outcome.ProvesReceived() {
		s.Acked, s.NotFoundReads = true, 0
		return
	}
	if a.Action == Check && a.Result.Outcome == provider.NotFound && !s.Acked && a.Started > last && a.Started <= now {
		countNotFound(s, a, t)
	}
}

// countNotFound counts a read that found nothing, if it proves anything. It must begin
// after the settle time of the latest send, because the operator may process a send late.
// It must also begin after the settle time of the last read that counted. Each read counts
// once, even if it is recorded twice after an unknown commit.
func countNotFound(s *store.Step, a *Answer, t provider.Traits) {
	settled := s.SendDeadline.Add(t.NotFoundDelay)
	switch {
	case a.Started <= settled:
	// No read has counted since the latest send. An older release counted reads without
	// their time: they count again from here.
	case s.NotFoundReads == 0 || s.NotFoundAt <= settled:
		s.NotFoundReads, s.NotFoundAt, s.NotFoundSeq = 1, a.Ended, a.WakeSeq
	case a.Started >= s.NotFoundAt.Add(t.NotFoundDelay):
		s.NotFoundReads, s.NotFoundAt, s.NotFoundSeq = s.NotFoundReads+1, a.Ended, a.WakeSeq
	}
}

// keepHandle keeps the handle of an answer. An answer that is recorded after that of a
// later call only fills a gap: the later call's handle is newer.
func keepHandle(s *store.Step, a *Answer, t provider.Traits, last till.Time) {
	if h := newHandle(s, a, t, last); h != "" {
		s.Handle = h
	}
}

// newHandle returns the handle that keepHandle keeps of an answer, "" if none. last is when
// the latest call before it ended. Where the customer goes to an address, the first handle
// belongs to the address that was shown, and a later send's handle to one that nobody sees.
func newHandle(s *store.Step, a *Answer, t provider.Traits, last till.Time) string {
	h := a.Result.Handle
	if t.Redirect && s.Handle != "" || len(h) > maxHandle || h == s.Handle || s.Handle != "" && a.Ended < last {
		return ""
	}
	return h
}

// neverSent reports whether a send left nothing at the operator. It must be the first and
// only send. Either it is certain that no byte left us, or the operator refused the call
// before it took the request. A refusal counts only while no other claim has taken the
// step.
//
// That no byte left us is a fact about the send, so it holds whichever instance has the
// lease. But it must be this send that is recorded as the only one. Sends is also 1 if this
// answer was recorded before and another first send has begun since, and after a restore
// under running instances versions are counted again. SendStartedAt distinguishes them: each
// claim that sends writes its own time.
func neverSent(s *store.Step, a *Answer) bool {
	if a.Action != Submit || s.Sends != 1 || s.Acked || s.Restored || a.Started != s.SendStartedAt {
		return false
	}
	return errors.Is(a.Err, provider.ErrNotSent) || refusedSend(s, a) != nil && a.LeaseVersion == s.LeaseVersion
}

// refusedSend returns the refusal of a send, nil if there is none. If the operator has
// called back about the request, it has taken it, so its answer is no refusal.
func refusedSend(s *store.Step, a *Answer) *provider.Refusal {
	if r, ok := errors.AsType[*provider.Refusal](a.Err); ok && a.Action == Submit && s.WakeSeq == a.WakeSeq {
		return r
	}
	return nil
}

// rejectionIsFinal reports whether a rejection ends the payment: only as the answer to the
// first and only send, and only if the operator has not called back since. On a later send
// it means that the request has to be checked. After a callback it does too: the operator
// has shown that it has the request.
func rejectionIsFinal(s *store.Step, a *Answer) bool {
	return s != nil && a.Action == Submit && s.Sends == 1 && !s.Acked && a.LeaseVersion == s.LeaseVersion && s.WakeSeq == a.WakeSeq
}

// reschedule sets when an open payment's step is due next and gives the lease back, if the
// answer's holder still has it. That is a permission, not a fact. A callback since the
// claim makes the step due as soon as callbacks may.
func reschedule(s *store.Step, a *Answer, expiresAt till.Time, t provider.Traits, now till.Time) {
	if a.LeaseVersion != s.LeaseVersion {
		return
	}
	s.LeaseUntil = 0
	refused := refusedSend(s, a)
	switch {
	case refused != nil && refused.RetryAfter > 0 && s.Sends == 0:
		// The operator says when it accepts the request again. If that is too late for the
		// customer, the payment ends with its window.
		s.DueAt = max(now, min(now.Add(refused.RetryAfter), expiresAt))
	case provenNotFound(s) && mayResend(s, t):
		s.DueAt = now
	case unsent(s) && now >= expiresAt && s.NotFoundReads > 0:
		s.DueAt = now // the read that its end waited for
	case s.WakeSeq != a.WakeSeq:
		s.DueAt = callbackDue(s, now)
	case Overdue(expiresAt, t, now):
		s.DueAt = now.Add(backoff(s, t))
	default:
		s.DueAt = now.Add(t.Poll)
	}
	// The read that completes the proof comes no later than it may.
	if proof := s.NotFoundAt.Add(t.NotFoundDelay); s.NotFoundReads > 0 && s.NotFoundReads < notFoundProof && !s.Acked && now < proof && proof < s.DueAt {
		s.DueAt = proof
	}
}

// callbackDue returns when a step with a callback since its claim is due: now, or as soon
// as a callback may cause another read.
func callbackDue(s *store.Step, now till.Time) till.Time {
	if s.CallbackDueAt > now && s.CallbackDueAt <= now.Add(store.MinCallbackInterval) {
		return s.CallbackDueAt
	}
	return now
}

// Overdue reports whether the window and its grace are over, so that a person should check
// an open payment.
func Overdue(expiresAt till.Time, t provider.Traits, now till.Time) bool {
	return now > expiresAt.Add(t.Grace)
}

// backoff doubles the pause each time: an overdue payment is checked ever more rarely, but
// for ever.
func backoff(s *store.Step, t provider.Traits) time.Duration {
	d := t.Poll
	for range s.BackoffSteps {
		if d *= 2; d >= t.PollMax {
			return t.PollMax
		}
	}
	s.BackoffSteps++
	return d
}

// beginLate turns the step of a payment that did not succeed into reads for late money,
// whichever instance has the lease.
func beginLate(s *store.Step, t provider.Traits, now till.Time) {
	s.LateFrom, s.LateReads, s.BackoffSteps, s.LeaseUntil, s.HeldAt = now, 0, 0, 0, 0
	s.LeaseVersion++ // a claim that was decided before this must fail
	if len(t.LateReads) > 0 {
		s.DueAt = now.Add(t.LateReads[0])
	}
}

// awaitReceipt keeps the step of a row whose money has moved for one more read, whichever
// instance has the lease. A callback came during the check and may bring the receipt that
// the check's answer lacked.
func awaitReceipt(s *store.Step, t provider.Traits, now till.Time) {
	s.LateFrom, s.LateReads, s.BackoffSteps, s.LeaseUntil, s.HeldAt = 0, settledReads(t), 0, 0, 0
	s.LeaseVersion++ // a claim that was decided before this must fail
	s.DueAt = callbackDue(s, now)
}

// settledReads is the late-read count of a row whose money has moved: all of them; see
// store.Step.Settled.
func settledReads(t provider.Traits) int { return max(1, len(t.LateReads)) }

// nextLateRead schedules the next read for late money after an answer. done means that
// every read of the schedule has an answer. A read without an answer, or whose answer comes
// by callback, is still due.
func nextLateRead(s *store.Step, a *Answer, t provider.Traits, now till.Time) (done bool) {
	asked := a.Err == nil && a.Result.Outcome == provider.AnswerPending
	if a.Err != nil || asked {
		if a.LeaseVersion == s.LeaseVersion {
			s.LeaseUntil, s.DueAt = 0, now.Add(backoff(s, t))
			if asked && s.WakeSeq != a.WakeSeq {
				s.DueAt = callbackDue(s, now) // the callback came during the check
			}
		}
		return false
	}
	s.BackoffSteps = 0
	for s.LateReads < len(t.LateReads) && s.LateFrom.Add(t.LateReads[s.LateReads]) <= a.Started {
		s.LateReads++
	}
	woken := s.WakeSeq != a.WakeSeq
	if s.LateReads >= len(t.LateReads) && !woken {
		return true
	}
	if a.LeaseVersion == s.LeaseVersion {
		s.LeaseUntil = 0
		if s.DueAt = callbackDue(s, now); !woken {
			s.DueAt = s.LateFrom.Add(t.LateReads[s.LateReads])
		}
	}
	return false
}
