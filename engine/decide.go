package engine

import (
	"errors"
	"time"

	"till"
	"till/provider"
	"till/store"
)

// Lease is how long a claimed step belongs to its holder. A dead instance's
// work resumes after it.
const Lease = 20 * time.Second

// notFoundProof is how many agreeing "not found" reads prove that a request
// never arrived. Each begins at least the settle time after the one before, so
// that one replica of the operator's that lags behind does not speak twice.
const notFoundProof = 2

// maxSends is how often one payment is sent. Each re-send moves the end of
// the window, so without a limit an operator that refuses every one of them,
// and then knows of nothing, would keep a payment open for ever.
const maxSends = 3

// maxHandle is how long an operator's id of a request may be; a longer one is
// no id.
const maxHandle = provider.MaxHandle

// unsent answers whether nothing was ever sent. What the operator was seen to hold
// was, whatever we thought; what was open when an old database was put back may have
// been sent since the backup, whatever the step says; and a send that left nothing,
// and that the operator has called back about since, was taken after all.
func unsent(s *store.Step) bool {
	return s.Sends == 0 && !s.Acked && !s.Restored && (s.SendStartedAt.IsZero() || s.CallbackDueAt < s.SendStartedAt)
}

// provenNotFound answers whether what was sent is proven absent. An operator that has called
// back since knows of it after all: one read more has to agree.
func provenNotFound(s *store.Step) bool {
	return !s.Acked && s.NotFoundReads >= notFoundProof && s.CallbackDueAt <= s.NotFoundAt
}

// Cancellable answers whether a payout with this step was provably not sent and
// is not about to be. One whose send was begun and left nothing goes out again at
// any moment, unless it is held.
func Cancellable(s *store.Step) bool {
	return s != nil && unsent(s) && (s.SendStartedAt.IsZero() || s.HeldAt != 0)
}

// mayResend answers whether a payment that is proven absent may be sent once
// more: only to an operator that would notice it twice. What was open when an old
// database was put back may have been cancelled since the backup, or refused,
// or ended by a person, and its client was told so: it is not sent any more.
func mayResend(s *store.Step, t provider.Traits) bool {
	return t.ClientReference && s.Sends < maxSends && !s.Restored
}

// MarkRestored marks the step of what was open when an old database was put back, at
// now: it may have been sent. All that was known of earlier sends is as old as
// the database, so absence has to be proven anew; and an instance that claimed
// it where nothing was lost yet may send until its lease ends.
func MarkRestored(s *store.Step, connection string, now till.Time) {
	s.Restored = true
	s.Sends = max(s.Sends, 1)
	if s.SendStartedAt.IsZero() {
		s.SendStartedAt = now
	}
	s.SendDeadline = max(s.SendDeadline, now.Add(Lease))
	s.NotFoundReads = 0
	s.LeaseVersion++ // a claim that was decided before this must not succeed
	s.DueAt = now
	s.Lane = LaneOf(connection, s, false, provider.Traits{})
}

// Action is what a due step asks for.
type Action string

// The actions.
const (
	Submit  Action = "submit"  // send the request (again)
	Check   Action = "check"   // ask how it stands
	Abandon Action = "abandon" // it never reached the operator and its window is over
	Hold    Action = "hold"    // do not send it while it is held; let go of it then
	Resolve Action = "resolve" // a person brings the operator's word
)

// calls answers whether an operator is called.
func (a Action) calls() bool { return a == Submit || a == Check }

// Next decides what to do about a due step. These lines prevent double
// charging; each has its reason.
func Next(s *store.Step, j *Instruction, t provider.Traits, now till.Time) Action {
	switch {
	// It has ended: what is left are reads for money that comes late.
	case j.Final:
		return Check
	// Not one byte was ever sent. Sending is safe, but not once the
	// customer's time is over.
	case unsent(s):
		if now < j.ExpiresAt {
			return Submit
		}
		return Abandon
	// Sent, and the operator was seen to hold it, or might.
	case !provenNotFound(s):
		return Check
	// Proven absent: two agreeing reads after the settle time, and no send
	// was ever acknowledged. The same reference may go out once more.
	case now < j.ExpiresAt && mayResend(s, t):
		return Submit
	case now < j.ExpiresAt || !provable(s, t):
		return Check
	}
	return Abandon
}

// provable answers whether "not found" proves that nothing was sent. An
// operator that does not look up by our reference may have paid under a name
// of its own: money that may have left is never given back on such a word.
func provable(s *store.Step, t provider.Traits) bool {
	return s.Kind != till.SubjectPayout || t.ClientReference
}

// LaneOf returns the lane in which a step waits: that of the operation that it
// will most likely ask for.
func LaneOf(connection string, s *store.Step, final bool, t provider.Traits) string {
	if !final && (unsent(s) || provenNotFound(s) && mayResend(s, t)) {
		return store.Lane(connection, operation(s.Kind, Submit))
	}
	return store.Lane(connection, operation(s.Kind, Check))
}

// MayAbandon answers whether a payment with this step can be ended without
// the operator's word: it was provably never sent, or is proven absent, and
// no send can start any more.
func MayAbandon(s *store.Step, expiresAt till.Time, t provider.Traits, now till.Time) bool {
	if s == nil || now < expiresAt {
		return false
	}
	if unsent(s) {
		return s.Kind != till.SubjectPayout || s.HeldAt == 0 // the time of one that was held has not run
	}
	return provenNotFound(s) && provable(s, t)
}

// NoteAnswer records on a step what an answer shows, at now. These are facts: they
// hold whoever holds the lease.
func NoteAnswer(s *store.Step, a *Answer, t provider.Traits, now till.Time) {
	last := s.CheckedAt
	s.Calls++
	s.CheckedAt = max(s.CheckedAt, a.Ended)
	if a.Action == Submit && a.LeaseVersion == s.LeaseVersion && now < s.SendDeadline && !errors.Is(a.Err, errPanicked) {
		// The call is over: from here on nothing of it leaves us.
		s.SendDeadline = now
	}
	keepHandle(s, a, last)
	if a.Err != nil {
		if neverSent(s, a) {
			s.Sends = 0 // when it was to begin stays: its attempt has taken the reference
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

// countNotFound counts a read that has found nothing, if it proves anything: only if
// it began after the settle time of the latest send, because before the operator
// may simply not have got to it, and after the settle time of the read that counted
// before. Each read counts once, also if it is recorded twice because nobody
// knew whether the first time was committed.
func countNotFound(s *store.Step, a *Answer, t provider.Traits) {
	settled := s.SendDeadline.Add(t.NotFoundDelay)
	switch {
	case a.Started <= settled:
	// Nothing has counted since the latest send. A release that did not write
	// down when may have counted something: that is asked for again.
	case s.NotFoundReads == 0 || s.NotFoundAt <= settled:
		s.NotFoundReads, s.NotFoundAt = 1, a.Ended
	case a.Started >= s.NotFoundAt.Add(t.NotFoundDelay):
		s.NotFoundReads, s.NotFoundAt = s.NotFoundReads+1, a.Ended
	}
}

// keepHandle takes the handle that an answer brings. One that is recorded late,
// after the answer to a later call, only fills a gap: what was learned since is newer.
func keepHandle(s *store.Step, a *Answer, last till.Time) {
	if h := newHandle(s, a, last); h != "" {
		s.Handle = h
	}
}

// newHandle returns the handle that keepHandle takes from an answer, "" if none;
// last is when the latest call before it ended.
func newHandle(s *store.Step, a *Answer, last till.Time) string {
	h := a.Result.Handle
	if len(h) > maxHandle || h == s.Handle || s.Handle != "" && a.Ended < last {
		return ""
	}
	return h
}

// neverSent answers whether a send turns out to have left nothing at the
// operator: it was the first and only one, and it is certain that not one byte
// left us, or that the operator refused the call before it took it, which counts
// while nobody else has claimed the step. The call is over, so nothing of it can
// follow.
//
// That nothing left us is a fact about the send, so it holds whoever holds the
// lease by now. But it must be this send that is on record as the only one: Sends
// is 1 also if this was told before, and another has begun the first send since.
// Which send is on record is told by when it was to begin: its claim wrote that
// down, and the claim of the next, which comes later, writes down another time.
func neverSent(s *store.Step, a *Answer) bool {
	if a.Action != Submit || s.Sends != 1 || s.Acked || s.Restored {
		return false
	}
	return errors.Is(a.Err, provider.ErrNotSent) && a.Started == s.SendStartedAt ||
		refusedSend(s, a) != nil && a.LeaseVersion == s.LeaseVersion
}

// refusedSend returns the refusal that a send was met with, nil if it was not.
// Whoever calls us back about a request has taken it, whatever was answered: then
// it is no refusal.
func refusedSend(s *store.Step, a *Answer) *provider.Refusal {
	if r, ok := errors.AsType[*provider.Refusal](a.Err); ok && a.Action == Submit && s.WakeSeq == a.WakeSeq {
		return r
	}
	return nil
}

// RejectionIsFinal answers whether a rejection ends the payment: only as the
// answer to the first and only send. On any later send it means "ask".
func RejectionIsFinal(s *store.Step, a *Answer) bool {
	return s != nil && a.Action == Submit && s.Sends == 1 && !s.Acked && a.LeaseVersion == s.LeaseVersion
}

// Reschedule sets when an open payment's step is due next and gives the lease
// back, if the answer's holder still has it: a permission. A wake that came
// since the claim makes it due as soon as wakes may.
func Reschedule(s *store.Step, a *Answer, expiresAt till.Time, t provider.Traits, now till.Time) {
	if a.LeaseVersion != s.LeaseVersion {
		return
	}
	s.LeaseUntil = 0
	refused := refusedSend(s, a)
	switch {
	case refused != nil && refused.RetryAfter > 0 && s.Sends == 0:
		// The operator says when it may be sent again. If that is too late for the
		// customer, it ends with the window.
		s.DueAt = max(now, min(now.Add(refused.RetryAfter), expiresAt))
	case provenNotFound(s) && mayResend(s, t):
		s.DueAt = now
	case s.WakeSeq != a.WakeSeq:
		s.DueAt = callbackDue(s, now)
	case Overdue(expiresAt, t, now):
		s.DueAt = now.Add(backoff(s, t))
	default:
		s.DueAt = now.Add(t.Poll)
	}
	// The read that completes the proof is not waited for longer than it takes.
	if proof := s.NotFoundAt.Add(t.NotFoundDelay); s.NotFoundReads > 0 && s.NotFoundReads < notFoundProof && !s.Acked && now < proof && proof < s.DueAt {
		s.DueAt = proof
	}
}

// callbackDue returns when a step that was woken since its claim is due: at once,
// or as soon as callbacks may ask for another read.
func callbackDue(s *store.Step, now till.Time) till.Time {
	if s.CallbackDueAt > now && s.CallbackDueAt <= now.Add(store.MinCallbackInterval) {
		return s.CallbackDueAt
	}
	return now
}

// Overdue answers whether the window and its grace are over, so that a person
// should look at a payment that is still open.
func Overdue(expiresAt till.Time, t provider.Traits, now till.Time) bool {
	return now > expiresAt.Add(t.Grace)
}

// backoff doubles the wait each time: an overdue payment is asked about ever
// more slowly, but for ever.
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

// BeginLate turns the step of a payment that ended other than in success into
// reads for late money, whoever holds the lease.
func BeginLate(s *store.Step, t provider.Traits, now till.Time) {
	s.LateFrom, s.LateReads, s.BackoffSteps, s.LeaseUntil, s.HeldAt = now, 0, 0, 0, 0
	s.LeaseVersion++ // a claim that was decided before this must not succeed
	if len(t.LateReads) > 0 {
		s.DueAt = now.Add(t.LateReads[0])
	}
}

// AwaitReceipt keeps the step of a row whose money has moved for one more read,
// whoever holds the lease: a callback came while the operator was asked, and may
// tell the receipt that its answer did not.
func AwaitReceipt(s *store.Step, t provider.Traits, now till.Time) {
	s.LateFrom, s.LateReads, s.BackoffSteps, s.LeaseUntil, s.HeldAt = 0, settledReads(t), 0, 0, 0
	s.LeaseVersion++ // a claim that was decided before this must not succeed
	s.DueAt = callbackDue(s, now)
}

// settledReads is how many late reads the step of a row counts whose money has
// moved: all of them; see store.Step.Settled.
func settledReads(t provider.Traits) int { return max(1, len(t.LateReads)) }

// NextLateRead schedules the next read for late money after an answer, and
// reports whether there is none: every read of the schedule has been
// answered. A read without an answer, or whose answer is to come by a callback,
// is owed still.
func NextLateRead(s *store.Step, a *Answer, t provider.Traits, now till.Time) (done bool) {
	asked := a.Err == nil && a.Result.Outcome == provider.AnswerPending
	if a.Err != nil || asked {
		if a.LeaseVersion == s.LeaseVersion {
			s.LeaseUntil, s.DueAt = 0, now.Add(backoff(s, t))
			if asked && s.WakeSeq != a.WakeSeq {
				s.DueAt = callbackDue(s, now) // the answer came while we asked
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
