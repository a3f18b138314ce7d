// Package upkeep does what nobody asks for and everything needs: work behind the
// commits, which any instance can do, and which one at a time does.
//
//	Turns           work that one instance at a time does, at an interval
//	RollUp          moves hourly tallies into the counters; FillSums, SplitHours
//	IndexPhones     fills the index of phones; IndexWords that of words
//	ClearAnswers    forgets what receivers of webhooks answered
//	ReadGauges      what the metrics show of the books
//	RaiseLevel      what may be written, once all instances can read it
//	AddGeneration   of the installation's secret; UseGeneration, RetireGeneration
//
// Nothing about money depends on when it runs. Start reading at turns.go.
//
// # Turns
//
// Turns are work that one instance at a time does (turns.go): a row per turn, taken
// by compare-and-swap. Its result is a small JSON document, which every instance reads.
// Instances (server/pulse.go) record every ten seconds that they are alive. Nothing about
// money reads either table.
//
// # The level
//
// The level (store/schema/level.go, level.go) says what may be written. A form that the release
// before cannot read waits until the level is raised: by a person, or after a day without
// an older instance (server/level.go, ADR 0042).
package upkeep
