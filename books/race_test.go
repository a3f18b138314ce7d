//go:build race

package books_test

// The race detector makes a long statement take minutes.
func init() { raceDetector = true }
