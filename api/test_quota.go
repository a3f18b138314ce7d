package api

// checkTestQuota returns the error for a test client that has used up its storage, nil for
// all others.
func (c *exchange) checkTestQuota() error { return c.session.CheckTestQuota(c.s.TestQuota) }
