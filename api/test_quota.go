package api

import (
	"fmt"

	"till"
)

// checkTestQuota returns the error for a test client that has used up its storage, nil for
// all others. Anyone can have a test client, and nothing pays for the storage. What exists
// goes on: payments end, events are delivered, replays are answered, and what frees storage
// is allowed.
func (c *exchange) checkTestQuota() error {
	if q := c.s.TestQuota; q == 0 || c.session.Client.Mode != till.Test || c.session.Stored < q {
		return nil
	}
	return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{{Code: till.FieldTooMany, Detail: fmt.Sprintf(
		"This test client has stored the %d MiB that it may. Ask whoever runs this service for another one. Payments and payouts that exist go on.", c.s.TestQuota>>20)}}}
}
