//go:build race

package api_test

// The race detector keeps several times the memory of what it watches.
func init() { raceDetector = true }
