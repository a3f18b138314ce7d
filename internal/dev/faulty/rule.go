package faulty

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fault is one kind of fault.
type Fault string

// The faults. With those on the answer, the service has processed the request.
const (
	LoseRequest Fault = "lose_request" // close the connection and do not forward the request
	LoseAnswer  Fault = "lose_answer"  // forward it, then close the connection
	Reset       Fault = "reset"        // forward it, then reset the connection
	Cut         Fault = "cut"          // send the first half of the answer
	Slow        Fault = "slow"         // wait, then forward it
	SlowAnswer  Fault = "slow_answer"  // forward it, wait, then answer
	Hang        Fault = "hang"         // neither forward nor answer
	HangAnswer  Fault = "hang_answer"  // forward it, and never answer
	Status      Fault = "status"       // answer with a status and do not forward
	StatusAfter Fault = "status_after" // forward it, then answer with a status
	Redirect    Fault = "redirect"     // answer with another address
	Repeat      Fault = "repeat"       // forward it twice
	Rewrite     Fault = "rewrite"      // replace texts in the answer
	SetHeader   Fault = "set_header"   // set headers of the answer
)

// Rule says which fault happens to which requests.
type Rule struct {
	On     string            `json:"on"`     // "POST /payments", as the path ends; "" is every request
	Nth    int               `json:"nth"`    // only this one of those, counted from 1; 0 is every one
	First  int               `json:"first"`  // only the first so many; 0 is all
	Share  float64           `json:"share"`  // of those, at random; 0 is all
	Do     Fault             `json:"do"`     // what happens
	Wait   Duration          `json:"wait"`   // of Slow and SlowAnswer
	Status int               `json:"status"` // of Status and StatusAfter
	Header map[string]string `json:"header"` // of Status, StatusAfter and SetHeader; "date+3s" is a date in three seconds
	Body   string            `json:"body"`   // of Status and StatusAfter
	From   string            `json:"from"`   // of Rewrite
	To     string            `json:"to"`
}

// Duration is a time as "1.5s", in JSON too.
type Duration time.Duration

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// matches reports whether a request matches a rule.
func (r *Rule) matches(method, path string) bool {
	if r.On == "" {
		return true
	}
	wantMethod, wantPath, _ := strings.Cut(r.On, " ")
	if wantMethod != method {
		return false
	}
	if open, ok := strings.CutSuffix(wantPath, "*"); ok {
		return strings.Contains(path, open)
	}
	return strings.HasSuffix(path, wantPath)
}

// Check returns an error for a rule without effect.
func (r *Rule) Check() error {
	switch r.Do {
	case LoseRequest, LoseAnswer, Reset, Cut, Hang, HangAnswer, Repeat, Redirect:
	case Slow, SlowAnswer:
		if r.Wait <= 0 {
			return fmt.Errorf("%s needs a time", r.Do)
		}
	case Status, StatusAfter:
		if r.Status < 200 || r.Status > 599 {
			return fmt.Errorf("%s needs a status", r.Do)
		}
	case Rewrite:
		if r.From == "" {
			return errors.New("rewrite needs a text")
		}
	case SetHeader:
		if len(r.Header) == 0 {
			return errors.New("set_header needs a header")
		}
	default:
		return fmt.Errorf("there is no fault %q", r.Do)
	}
	if r.Share < 0 || r.Share > 1 {
		return errors.New("a share is between 0 and 1")
	}
	return nil
}

// ParseShare parses "20%".
func ParseShare(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(share > 0 && share <= 100) {
		return 0, fmt.Errorf("%q is no share: as 20%%", text)
	}
	return share / 100, nil
}

// ParseSlow parses "2s:5%": five of a hundred requests wait two seconds.
func ParseSlow(text string) (Rule, error) {
	wait, share, ok := strings.Cut(text, ":")
	d, err := time.ParseDuration(wait)
	part, shareErr := ParseShare(share)
	if !ok || err != nil || shareErr != nil || d <= 0 {
		return Rule{}, fmt.Errorf("%q is no slowness: as 2s:5%%", text)
	}
	return Rule{Do: Slow, Wait: Duration(d), Share: part}, nil
}

// ParseStatus parses "503:3%": three of a hundred requests are answered 503.
func ParseStatus(text string) (Rule, error) {
	status, share, ok := strings.Cut(text, ":")
	code, err := strconv.Atoi(status)
	part, shareErr := ParseShare(share)
	r := Rule{Do: Status, Status: code, Share: part}
	if !ok || err != nil || shareErr != nil || r.Check() != nil {
		return Rule{}, fmt.Errorf("%q is no status: as 503:3%%", text)
	}
	return r, nil
}
