// Package loop runs a step again and again, at an interval or when woken, until
// stopped. Every worker is one step, which tests call directly, inside this
// loop, which alone is tested for timing.
//
// Promises:
//
//   - The first step runs at once. Two steps of one loop never overlap.
//   - A wake is never lost: one that comes while a step runs makes it run again.
//     Many wakes may become one step.
//   - Jitter only lengthens a wait, so a step that asks to run when something
//     is due does not run before it, and instances that start together drift
//     apart.
//   - A panic ends neither the loop nor the process. The loop then waits the
//     whole interval, wakes or not, so that a broken step does not spin.
//   - Run returns when its context has ended and the current step is over.
//
// Start reading at loop.go.
package loop
