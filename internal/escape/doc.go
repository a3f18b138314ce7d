// Package escape makes text safe to show: clients, customers, operators and
// files choose what stands in references, names and messages, and a terminal
// obeys some of it. A new line can forge a line of a report, an escape code can
// erase one, a direction character can turn an amount round, and what has no
// width hides.
//
// Text is for a text that stands on a line, and Writer is the net under
// everything that a command writes. Both write what they replace as JSON does
// (\n, \u202e), so JSON that goes through a Writer stays what it was.
package escape
