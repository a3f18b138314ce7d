// Package loadgen is a load generator for the API: it makes payments with unique
// keys over plain connections, and costs far less than the server it loads.
//
// Closed asks again as soon as it is answered: it finds what a server can do
// at most. Open asks at fixed times, whether the server keeps up or not: it
// finds what clients would see at a given rate. Every load is bounded in
// connections, in time and in count.
//
// Start reading at closed.go and open.go.
package loadgen
