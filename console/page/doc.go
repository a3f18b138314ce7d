// Package page holds the templates of pages. A page is the layout, the parts and a file
// of its own.
package page
