package trigger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"till"
	"till/internal/dev/remote"
)

// Story is a line of GET /sandbox/stories.
type Story struct {
	Subject     string   `json:"subject"` // payment, payout or refund
	Name        string   `json:"name"`
	EndsIn      string   `json:"ends_in"` // "" if every other phone plays it
	Description string   `json:"description"`
	Status      string   `json:"status"` // in which it ends
	Reason      string   `json:"failure_reason"`
	Events      []string `json:"events"`

	cancel bool // the payout or refund is cancelled as soon as it is there
}

// The events that no story brings by itself.
const (
	endpointDisabled = string(till.EndpointDisabled)
	payoutCancelled  = string(till.PayoutEventCancelled)
	refundCancelled  = string(till.RefundCancelled)
)

// waitsForPerson is the story that a person decides. It is not chosen for the event that it
// may bring.
const waitsForPerson = "asks"

// Stories reads the table of the service.
func Stories(ctx context.Context, c *remote.Client) ([]Story, error) {
	var list struct {
		Items []Story `json:"items"`
	}
	err := c.Get(ctx, "/sandbox/stories", 0, &list)
	return list.Items, err
}

// choose returns the story of a name, such as declined or payout.stuck, or the first story
// that ends with an event, such as payment.expired.
func choose(stories []Story, name string) (Story, error) {
	if name == payoutCancelled || name == refundCancelled {
		subject, _, _ := strings.Cut(name, ".")
		i := slices.IndexFunc(stories, func(s Story) bool { return s.Subject == subject && s.Name == "held_back" })
		if i < 0 {
			return Story{}, fmt.Errorf("this service has no story with a %s that can be cancelled", subject)
		}
		s := stories[i]
		s.cancel, s.Status, s.Events = true, "cancelled", []string{s.Events[0], name}
		return s, nil
	}
	for _, fits := range []func(Story) bool{
		func(s Story) bool { return s.Name == name }, // payments come first in the table, then payouts
		func(s Story) bool { return s.Subject+"."+s.Name == name && !isKind(name) },
		func(s Story) bool { return s.Name != waitsForPerson && s.Events[len(s.Events)-1] == name },
		func(s Story) bool { return slices.Contains(s.Events, name) },
	} {
		if i := slices.IndexFunc(stories, fits); i >= 0 {
			return stories[i], nil
		}
	}
	if isKind(name) {
		return Story{}, fmt.Errorf("no story of the sandbox brings %s", name)
	}
	return Story{}, fmt.Errorf("there is no story or event %q: 'till trigger --list' shows them", name)
}

func isKind(name string) bool {
	return strings.Contains(name, ".") && slices.Contains(till.EventKinds, till.EventKind(name))
}
