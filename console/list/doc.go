// Package list holds what lists have alike: the filter, which is all in the address; the
// range of time; the pages; and the table for spreadsheets.
package list
