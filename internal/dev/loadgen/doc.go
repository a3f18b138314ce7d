// Package loadgen is a load generator for the API. It creates payments with
// unique keys over plain connections, and uses far less CPU than the server.
//
// Closed sends the next request when the previous one is answered: it measures
// the highest throughput. Open sends requests at fixed times, whether the server
// keeps up or not: it measures what clients see at a given rate. Every load is
// bounded in connections, in time and in count.
//
// It knows the API, not the code of the service.
//
// Start reading at closed.go and open.go.
package loadgen
