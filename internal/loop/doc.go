// Package loop runs a step repeatedly, at an interval or when woken, until its
// context ends. Every background worker is one step inside this loop. Tests call
// the step directly; only the loop itself is tested for timing.
//
// It promises:
//
//   - The first step runs at once. Two steps of one loop never overlap.
//   - A wake is never lost: a wake during a step causes another step. Several
//     wakes may cause one step.
//   - Jitter only lengthens a wait, so a step does not run before the time that it
//     asked for, and instances that start together drift apart.
//   - A panic ends neither the loop nor the process. The loop then waits the whole
//     interval, so that a broken step does not spin.
//   - Run returns when its context has ended and the current step is over.
//
// Start reading at loop.go.
package loop
