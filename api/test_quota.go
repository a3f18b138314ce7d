package api

import (
	"fmt"

	"till"
)

// checkTestQuota returns what a test client is told that has stored as much as it may,
// nil to all others. Anybody can have a test client, and nothing pays for what
// it keeps on our disk. What exists goes on: payments end, events are told,
// whoever repeats a request is answered, and whatever makes less is done.
func (c *exchange) checkTestQuota() error {
	if q := c.s.TestQuota; q == 0 || c.session.Client.Mode != till.Test || c.session.Stored < q {
		return nil
	}
	return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{{Code: till.FieldTooMany, Detail: fmt.Sprintf(
		"This test client has stored the %d MiB that it may. Ask whoever runs this service for another one. Payments and payouts that exist go on.", c.s.TestQuota>>20)}}}
}
