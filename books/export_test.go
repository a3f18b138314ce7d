package books

// SliceFor makes a comparison read so many rows at once, and look up so many
// lines by key before it walks.
func SliceFor(slice, seeks int) func(c *Comparison) {
	return func(c *Comparison) { c.slice, c.maxSeeks = slice, seeks }
}
