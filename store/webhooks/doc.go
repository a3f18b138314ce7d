// Package webhooks has the SQL of what clients are told: their endpoints, the deliveries to
// them, receivers' answers, and the ranges of a log that an endpoint is sent again.
//
// Its functions run in a transaction of store. What is sent when, package webhook decides.
package webhooks
