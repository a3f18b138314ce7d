// Package reconcile compares an operator's statement with our books.
//
//	Mapping  says which column of the file is what
//	Compare  reads the file and finds the differences; it changes nothing
//	Apply    settles payments and payouts through collect and payout, and
//	         nowhere else; a line that names us and matches nothing is a stray
//	Note     records what was found, for the metrics
//
// The file is read once, into small records with an index; the rest of a line is
// read again where it is needed. Amounts and phone numbers decide nothing. A second
// run sees what the first one changed, so it may be interrupted anywhere. Start
// reading at reconcile.go.
//
//	file ── mapping, parse, read ──► records of 80 bytes with an index
//	payments and payouts, created in its time ── in the order of ids ─┐
//	created before, booked in it ── by the entries on the operator's account ─┤ match: which lines are about it
//	named by a line that is left ── by reference, id or receipt ───┘ classify: pure, how the two sides differ
//	--apply ── apply: engine.ResolveAll (engine's Apply, with collect's and payout's rules), 100 per commit;
//	           a case for each contradiction; a stray for each line that names us
package reconcile
