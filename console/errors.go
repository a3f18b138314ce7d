package console

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
	errNoPage    = &pageError{http.StatusNotFound, "missing"}
	errInsecure  = &pageError{http.StatusForbidden, "insecure"}
	errForeign   = &pageError{http.StatusForbidden, "foreign"}
	errAway      = &pageError{http.StatusServiceUnavailable, "away"}
	errBusy      = &pageError{http.StatusTooManyRequests, "busy"}
	errOurs      = &pageError{http.StatusInternalServerError, "ours"}
	errLongCSV   = &pageError{http.StatusBadRequest, "long"}
	errInput     = &pageError{http.StatusBadRequest, "input"}
	errProof     = &pageError{http.StatusForbidden, "proof"}
	errAllowed   = &pageError{http.StatusForbidden, "allowed"}
	errPhoneOver = &pageError{http.StatusGone, "phone"}
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
func (v *visit) fail(err error) {
	if gone(err) || v.written {
		return
	}
	if r := people.RefusalOf(err); r != nil && v.refuseVisit(r) {
		return
	}
	e := v.pageError(err)
	if e == errOurs || e == errAway {
		v.k.Log.Warn("page not served", "request_id", v.id, "path", v.route.Path, "error", err)
	}
	if region := v.r.Header.Get("Till-Region"); region != "" {
		v.written = true
		v.w.WriteHeader(e.status) // the page around it stays
		return
	}
	p := &errorPage{Status: e.status,
		What: v.words.T("error." + e.code + "_what"), Certain: v.words.T("error." + e.code + "_certain"), Do: v.words.T("error." + e.code + "_do")}
	p.Frame = v.frame(p.What, "")
	if r := people.RefusalOf(err); r != nil && r.Need != "" {
		p.Need = v.words.T("permission." + string(r.Need))
		for i, role := range people.GiversOf(r.Need) {
			if i > 0 {
				p.Givers += ", "
			}
			p.Givers += v.words.T("role." + string(role))
		}
	}
	if e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests {
		v.w.Header().Set("Retry-After", "2")
	}
	v.render(e.status, "error", p)
}

// refuseVisit answers refusals that lead to another page.
func (v *visit) refuseVisit(r *people.Refusal) bool {
	switch {
	case r.Code != people.SessionOver && r.Code != people.FactorNeeded:
		return false
	case v.r.Header.Get("Till-Region") != "" || v.r.Header.Get("Accept") == "text/event-stream":
		v.wait()
		v.written = true
		v.w.WriteHeader(http.StatusUnauthorized) // the script loads the page again, which leads on
	case r.Code == people.FactorNeeded:
		_ = v.redirect(Prefix + "/me")
	default:
		to := Prefix + "/enter"
		if v.r.Method == http.MethodGet && v.r.URL.Path != Prefix+"/" {
			to += "?to=" + url.QueryEscape(v.r.URL.RequestURI())
		}
		_ = v.redirect(to)
	}
	return true
}

// pageError returns what the person is told about err. What is no refusal is
// ours: it is logged, and the person reads only that it happened.
func (v *visit) pageError(err error) *pageError {
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
		return errNoPage
	case till.CodeValidationFailed, till.CodeInvalidParameter:
		return errInput
	case till.CodeServiceUnavailable:
		return errAway
	case till.CodeClientSuspended:
		return errSuspended
	}
	if errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) || errors.Is(err, context.DeadlineExceeded) {
		return errAway
	}
	return errOurs
}

// refusal returns what a person is told about a refusal.
func (v *visit) refusal(r *people.Refusal) string {
	return v.words.T("refusal."+string(r.Code), "n", int64(r.Wait.Seconds()))
}

// refused returns the words of a refusal, or the error if it is none: that is
// ours, and has a page of its own.
func (v *visit) refused(err error) (string, error) {
	r := people.RefusalOf(err)
	if r == nil || r.Code == people.SessionOver || r.Code == people.FactorNeeded {
		return "", err
	}
	v.noteRefusal(r)
	return v.refusal(r), nil
}
