package reconcile

// SliceFor makes a comparison read so many rows at once, and look up so many
// lines by key before it walks.
func SliceFor(slice, seeks int) func(c *Options) {
	return func(c *Options) { c.slice, c.maxLookups = slice, seeks }
}
