package shell

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"till"
	"till/people"
	"till/store"
)

// pageError is a refusal that has its words in the catalogues: what happened,
// what is certain and what to do, under error.<code>.
type pageError struct {
	status int
	code   string
}

func (e *pageError) Error() string { return "page refused: " + e.code }

var (
	ErrNoPage    = &pageError{http.StatusNotFound, "missing"}
	errInsecure  = &pageError{http.StatusForbidden, "insecure"}
	errForeign   = &pageError{http.StatusForbidden, "foreign"}
	ErrAway      = &pageError{http.StatusServiceUnavailable, "away"}
	errBusy      = &pageError{http.StatusTooManyRequests, "busy"}
	errOurs      = &pageError{http.StatusInternalServerError, "ours"}
	ErrLongCSV   = &pageError{http.StatusBadRequest, "long"}
	ErrInput     = &pageError{http.StatusBadRequest, "input"}
	errProof     = &pageError{http.StatusForbidden, "proof"}
	errAllowed   = &pageError{http.StatusForbidden, "allowed"}
	ErrPhoneOver = &pageError{http.StatusGone, "phone"}
	errSuspended = &pageError{http.StatusForbidden, "suspended"}
	errElse      = &pageError{http.StatusForbidden, "refused"}
)

// errorPage is what the person reads.
type errorPage struct {
	*Frame
	What, Certain, Do string
	Need, Givers      string // of a missing permission
	Status            int
}

// fail answers with an error.
func (v *Visit) fail(err error) {
	if gone(err) || v.Written {
		return
	}
	if r := people.RefusalOf(err); r != nil && v.refuseVisit(r) {
		return
	}
	e := v.PageError(err)
	if e == errOurs || e == ErrAway {
		v.Console.Log.Warn("page not served", "request_id", v.ID, "path", v.Route.Path, "error", err)
	}
	if region := v.R.Header.Get("Till-Region"); region != "" {
		v.Written = true
		v.W.WriteHeader(e.status) // the page around it stays
		return
	}
	p := &errorPage{Status: e.status,
		What: v.Words.T("error." + e.code + "_what"), Certain: v.Words.T("error." + e.code + "_certain"), Do: v.Words.T("error." + e.code + "_do")}
	p.Frame = v.Frame(p.What, "")
	if r := people.RefusalOf(err); r != nil && r.Need != "" {
		p.Need = v.Words.T("permission." + string(r.Need))
		for i, role := range people.GiversOf(r.Need) {
			if i > 0 {
				p.Givers += ", "
			}
			p.Givers += v.Words.T("role." + string(role))
		}
	}
	if e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests {
		v.W.Header().Set("Retry-After", "2")
	}
	v.Render(e.status, "error", p)
}

// refuseVisit answers refusals that lead to another page.
func (v *Visit) refuseVisit(r *people.Refusal) bool {
	switch {
	case r.Code != people.SessionOver && r.Code != people.FactorNeeded:
		return false
	case v.R.Header.Get("Till-Region") != "" || v.R.Header.Get("Accept") == "text/event-stream":
		v.wait()
		v.Written = true
		v.W.WriteHeader(http.StatusUnauthorized) // the script loads the page again, which leads on
	case r.Code == people.FactorNeeded:
		_ = v.Redirect(Prefix + "/me")
	default:
		to := Prefix + "/enter"
		if v.R.Method == http.MethodGet && v.R.URL.Path != Prefix+"/" {
			to += "?to=" + url.QueryEscape(v.R.URL.RequestURI())
		}
		_ = v.Redirect(to)
	}
	return true
}

// PageError returns what the person is shown about err. What is no refusal is
// ours: it is logged, and the person reads only that it happened.
func (v *Visit) PageError(err error) *pageError {
	var e *pageError
	if errors.As(err, &e) {
		return e
	}
	if r := people.RefusalOf(err); r != nil {
		switch r.Code {
		case people.NotAllowed:
			return errAllowed
		case people.ProofNeeded:
			return errProof
		}
		return errElse
	}
	switch till.ErrorCode(err) {
	case till.CodePaymentNotFound, till.CodePayoutNotFound, till.CodeEventNotFound, till.CodeEndpointNotFound,
		till.CodeKeyNotFound, till.CodePromptNotFound, till.CodeClientNotFound, till.CodeNotFound:
		return ErrNoPage
	case till.CodeValidationFailed, till.CodeInvalidParameter:
		return ErrInput
	case till.CodeServiceUnavailable:
		return ErrAway
	case till.CodeClientSuspended:
		return errSuspended
	}
	if errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) || errors.Is(err, context.DeadlineExceeded) {
		return ErrAway
	}
	return errOurs
}

// refusal returns what a person is shown about a refusal.
func (v *Visit) refusal(r *people.Refusal) string {
	return v.Words.T("refusal."+string(r.Code), "n", int64(r.Wait.Seconds()))
}

// Refused returns the words of a refusal, or the error if it is none: that is
// ours, and has a page of its own.
func (v *Visit) Refused(err error) (string, error) {
	r := people.RefusalOf(err)
	if r == nil || r.Code == people.SessionOver || r.Code == people.FactorNeeded {
		return "", err
	}
	v.noteRefusal(r)
	return v.refusal(r), nil
}
