package engine

// Once makes an answer one that saw nothing but the first send on record.
func Once(a *Answer) *Answer {
	a.once = true
	return a
}
