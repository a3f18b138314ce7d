// Package chart draws bars, stacked bars, lines and histograms as SVG on the
// server, from whole numbers. A chart is read without colour, by print and by
// screen readers: series differ by pattern, its title is a sentence, and its
// numbers are in a table that the page shows beside it. Every bar carries its
// value as text, which the page's script shows under the pointer or the focus.
//
// It knows no page, no language and no database: texts come ready.
//
// Start reading at chart.go.
package chart
