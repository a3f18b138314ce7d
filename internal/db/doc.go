// Package db runs transactions on one of several SQL engines. It knows no
// table: the statements are defined by those who send them.
package db
