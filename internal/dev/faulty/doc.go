// Package faulty is a proxy that injects faults between a client and Till. It loses, cuts,
// delays, repeats and invents requests and answers, by rules and with a seed, to test the
// client.
//
// It knows HTTP and nothing of Till. Start reading at proxy.go.
package faulty
