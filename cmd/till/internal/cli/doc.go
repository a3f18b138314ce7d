// Package cli is what the commands of till share.
//
// It prints: Printf, PrintLine, Table and PrintJSON escape each text that somebody else
// chose, and nothing else in cmd/till writes to the terminal. It reads what many commands
// ask for: the database, the person who decides, a reason, a period, evidence, the
// installation's secret. It opens the database, and the processors that record an
// operator's word. It knows no command.
//
// Start reading in output.go.
package cli
