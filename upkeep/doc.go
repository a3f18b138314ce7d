// Package upkeep does what nobody asks for and everything needs: work behind the
// commits, which any instance can do, and which one at a time does.
//
//	Turns           work that one instance at a time does, at an interval
//	RollUp          moves hourly tallies into the counters; FillSums, SplitHours
//	IndexPhones     fills the index of phones
//	ClearAnswers    forgets what receivers of webhooks answered
//	ReadGauges      what the metrics show of the books
//	RaiseLevel      what may be written, once all instances can read it
//	AddGeneration   of the installation's secret; UseGeneration, RetireGeneration
//
// Nothing about money depends on when it runs. Start reading at turns.go.
package upkeep
