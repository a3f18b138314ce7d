// Package postgres is the db.Engine for a PostgreSQL server, over pgx.
package postgres
