// Package sqlstore keeps the three tables of a till.Store in a database of yours,
// through database/sql: SQLite, PostgreSQL or MySQL, whatever the driver.
//
// The statements are written once, in the words that the three have in common.
// The few words that differ are in a Dialect.
package sqlstore
