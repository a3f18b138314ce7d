package people

import (
	"errors"
	"fmt"
	"time"
)

// Refusal is a no that the person should read. Pages have words for each code;
// any other error is ours.
type Refusal struct {
	Code RefusalCode
	Wait time.Duration // for WaitFirst: how long; rounded up to seconds
	Need Permission    // for NotAllowed: what is missing
}

// RefusalCode names a kind of refusal.
type RefusalCode string

// The refusals.
const (
	WrongCredentials RefusalCode = "wrong_credentials" // login or password; which one is not shown
	WrongCode        RefusalCode = "wrong_code"        // neither the TOTP code nor a recovery code, or it was used
	WrongPassword    RefusalCode = "wrong_password"    // of somebody who is signed in
	WaitFirst        RefusalCode = "wait_first"        // too many failures; see Wait
	Busy             RefusalCode = "busy"              // too many passwords are being checked; try again
	NotFromHere      RefusalCode = "not_from_here"     // the installation's staff sign in from its own networks only
	SessionOver      RefusalCode = "session_over"      // sign in (again)
	StepOver         RefusalCode = "step_over"         // a form of several steps took too long, or was used already; begin again
	ProofNeeded      RefusalCode = "proof_needed"      // fresh proof is missing or older than ProofWindow
	FactorNeeded     RefusalCode = "factor_needed"     // set up a second factor first
	NotAllowed       RefusalCode = "not_allowed"       // see Need
	NotYourself      RefusalCode = "not_yourself"      // nobody changes their own role or disables themselves
	LinkUnknown      RefusalCode = "link_unknown"      // no such invitation
	LinkExpired      RefusalCode = "link_expired"
	LinkUsed         RefusalCode = "link_used"
	LinkWithdrawn    RefusalCode = "link_withdrawn"
	LinkForOther     RefusalCode = "link_for_other"  // the invitation names another login
	AlreadyMember    RefusalCode = "already_member"  // the person has a role there
	LoginTaken       RefusalCode = "login_taken"     // sign in with it and open the link again
	LoginInvalid     RefusalCode = "login_invalid"   // neither an e-mail address nor a phone number with its country code
	NameInvalid      RefusalCode = "name_invalid"    // not 1 to till.MaxName plain characters
	ValueInvalid     RefusalCode = "value_invalid"   // a language, zone, theme or role that does not exist
	PasswordShort    RefusalCode = "password_short"  // fewer than MinPassword characters
	PasswordLong     RefusalCode = "password_long"   // more than MaxPassword bytes
	PasswordCommon   RefusalCode = "password_common" // on the list of common ones, or the login or name
	PasskeyRefused   RefusalCode = "passkey_refused" // the device's answer is not right
	TooMany          RefusalCode = "too_many"        // a limit: passkeys, memberships, open invitations
	LastFactor       RefusalCode = "last_factor"     // the role needs a second factor, and this is the last
	PersonUnknown    RefusalCode = "person_unknown"  // no such person there
)

// Error implements error.
func (r *Refusal) Error() string {
	switch {
	case r.Wait > 0:
		return fmt.Sprintf("refused: %s, %s", r.Code, r.Wait)
	case r.Need != "":
		return fmt.Sprintf("refused: %s, %s", r.Code, r.Need)
	}
	return "refused: " + string(r.Code)
}

// RefusalOf returns the refusal that an error is; nil if it is none.
func RefusalOf(err error) *Refusal {
	var r *Refusal
	errors.As(err, &r)
	return r
}

func refuse(code RefusalCode) error { return &Refusal{Code: code} }

// RefusalCodes lists every refusal, for packages that have words for each.
var RefusalCodes = []RefusalCode{
	WrongCredentials, WrongCode, WrongPassword, WaitFirst, Busy, NotFromHere,
	SessionOver, StepOver, ProofNeeded, FactorNeeded, NotAllowed, NotYourself,
	LinkUnknown, LinkExpired, LinkUsed, LinkWithdrawn, LinkForOther, AlreadyMember,
	LoginTaken, LoginInvalid, NameInvalid, ValueInvalid, PasswordShort, PasswordLong,
	PasswordCommon, PasskeyRefused, TooMany, LastFactor, PersonUnknown,
}
