package engine

import (
	"till"
	"till/provider"
	"till/store"
	"time"
)

// Instruction is what the engine must know of a subject to act on its step.
type Instruction struct {
	Ref         store.Ref
	Connection  string
	Fingerprint string
	Request     provider.Request
	ExpiresAt   till.Time
	Window      time.Duration // how far a re-send moves ExpiresAt
	Final       bool

	// Subject is the subject as it was when the job was made, and stays so; nil if
	// it is not kept. With it, most of what comes of the job can be recorded
	// without reading the subject again.
	Row any
}

// Answer is what came of acting on a step.
type Answer struct {
	Ref        store.Ref
	Action     Action
	Connection string
	Reference  till.ID

	LeaseVersion int64 // the lease under which it was done
	WakeSeq      int64 // the wakes that were seen before it began

	Started, Ended till.Time
	Result         provider.Result
	Err            error // non-nil: we do not know

	onlyFirstSend bool // when it was claimed, one send was all that was on record
	cachedRow     any  // the subject as it was then, nil if that is not known

	// By, Evidence and Digest are set on a person's resolution.
	By, Evidence string
	Digest       []byte // SHA-256 of the evidence

	// RecordErr is set by Apply if the answer could not be recorded.
	RecordErr error
	storeErr  error // what the database said then, nil if it was not asked

}
