// Package logs writes the service's log. Keys, secrets and phone numbers are masked in every
// line (New, Redact); lines about one fault of the database are counted, one a second
// (CountFaults); the last lines are kept in memory for a support bundle (Ring).
package logs
