// Package seal encrypts what the database keeps and must not know: secrets of
// webhook endpoints, tokens of operators. The keys derive from the
// installation's secret, one for each use, so that whoever reads the database
// alone can open nothing, and what was sealed for one use does not open in
// another.
package seal
