package pawapay

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"till"
	"till/provider/simulator"
)

// simWrongCode is the one-time code that a customer mistyped.
const simWrongCode = "000000"

// simPages is where the simulator's addresses lead.
const simPages = "/authorize/"

// What pawaPay says is next for a deposit.
const (
	stepFinal    = "FINAL_STATUS"
	stepGetURL   = "GET_AUTH_URL"
	stepRedirect = "REDIRECT_TO_AUTH_URL"
)

// simFlow returns how a provider's customers approve.
func simFlow(provider string) till.Flow {
	if i := slices.IndexFunc(defaultRoutes, func(r Route) bool { return r.Code == provider }); i >= 0 {
		return defaultRoutes[i].flow()
	}
	return till.FlowPush
}

func nextStep(provider string) string {
	if simFlow(provider) == till.FlowRedirect {
		return stepGetURL
	}
	return stepFinal
}

// checkFlow refuses what a provider's flow lacks, and what it does not take.
func (q *simRequest) checkFlow(provider string, k *serviceKind) (code, name string) {
	flow := simFlow(provider)
	if k != &deposits {
		flow = till.FlowPush
	}
	for _, m := range []struct {
		name, value string
		of          till.Flow
	}{
		{"preAuthorisationCode", q.PreAuthorisationCode, till.FlowCode},
		{"successfulUrl", q.SuccessfulURL, till.FlowRedirect},
		{"failedUrl", q.FailedURL, till.FlowRedirect},
	} {
		switch {
		case flow == m.of && m.value == "":
			return "MISSING_PARAMETER", m.name
		case flow != m.of && m.value != "":
			return "INVALID_PARAMETER", m.name
		case m.of == till.FlowCode && len(m.value) > 36:
			return "INVALID_PARAMETER", m.name
		}
	}
	return "", ""
}

// addressAfter is how long Wave takes to give pawaPay an address.
func (s *Simulator) addressAfter() time.Duration { return min(s.c.Decide/4, 2*time.Second) }

// simHost returns the address under which a request reached the simulator.
func simHost(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// showAddress adds where the customer of an open deposit approves.
func (s *Simulator) showAddress(r *simRecord, e *simulator.Entry, host string) {
	var data simData
	json.Unmarshal([]byte(e.Data), &data)
	if e.Kind != simKind(&deposits) || simFlow(data.Provider) != till.FlowRedirect {
		return
	}
	r.SuccessfulURL, r.FailedURL, r.NextStep = data.Back, data.Back, stepFinal
	if state, _ := s.stateOf(e); state != simulator.Open {
		return
	}
	if r.NextStep = stepGetURL; !s.book.Now().Before(e.At.Add(s.addressAfter())) {
		r.Status, r.NextStep, r.AuthorizationURL = "PROCESSING", stepRedirect, host+simPages+e.Reference
	}
}

// sendAddress notifies the caller that a deposit has an address now.
func (s *Simulator) sendAddress(id, host string) {
	if s.c.DepositCallback == "" {
		return
	}
	s.callbacks.Send(s.addressAfter(), s.c.CallbackRetries, func() *http.Request {
		e, found := s.book.Find(simKind(&deposits), id)
		if state, _ := s.stateOf(&e); !found || state != simulator.Open {
			return nil
		}
		record := s.record(&e, &deposits)
		s.showAddress(record, &e, host)
		record.ClientReferenceID = "" // a callback does not repeat it
		body, _ := json.Marshal(record)
		r := simulator.Post(http.MethodPost, s.c.DepositCallback, body)
		if r != nil && s.c.SignCallbacks {
			s.sign(r, body)
		}
		return r
	})
}

// page is where an address leads. The number has chosen what happens.
func (s *Simulator) page(w http.ResponseWriter, r *http.Request) {
	e, found := s.book.Find(simKind(&deposits), r.PathValue("id"))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !found {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "There is no such payment.\n")
		return
	}
	state, _ := s.stateOf(&e)
	io.WriteString(w, "This is where a customer would approve "+e.Amount+" "+e.Currency+". Its number decides what happens: "+string(state)+".\n")
}

// simAuth is what active-conf calls the flows.
var simAuth = map[till.Flow]string{till.FlowPush: "PROVIDER_AUTH", till.FlowRedirect: "REDIRECT_AUTH", till.FlowCode: "PREAUTH"}
