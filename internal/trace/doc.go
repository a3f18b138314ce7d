// Package trace sends spans to an OpenTelemetry collector: what happened to single payments
// and payouts, on whichever instance.
//
// It promises:
//
//   - A subject's trace is its id, so every instance knows the trace without storing
//     anything. All instances agree which subjects are sampled, because that is a function
//     of the id.
//   - Nothing waits for a span. A span that finds the ring full is dropped and counted, and
//     so is one that the collector does not take.
//   - A nil *Tracer records nothing and allocates nothing.
//
// It does not know what the spans are about; the packages that record them choose the
// attributes. No attribute may hold a phone, an amount, a name, a key or a client's URL.
//
// Start reading at trace.go.
package trace
