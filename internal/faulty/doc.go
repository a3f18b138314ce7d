// Package faulty is a proxy with bad habits. It stands between a client and a
// Till, and loses requests and answers, cuts them, delays, repeats and invents
// them, by rules and with a seed, so that a client's duties can be seen to hold.
//
// Start at Proxy. It knows HTTP and nothing of Till.
package faulty
