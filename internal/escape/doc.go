// Package escape makes text safe to print. Clients, customers, operators and
// files choose references, names and messages, and a terminal executes some
// characters: a new line can forge a line of a report, an escape code can erase
// one, a direction character can reverse an amount, and a zero-width character
// is invisible.
//
// Text escapes one text for one line. Writer escapes everything that a command
// prints. Both use JSON escapes (\n, \u202e), so JSON that passes through a
// Writer keeps its meaning.
//
// Start reading at escape.go.
package escape
