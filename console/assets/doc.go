// Package assets holds the files that browsers keep for ever: styles, scripts and icons.
// The name of each changes with its text.
package assets
