//go:build race

package main

// raceFactor is how many times as much memory the race detector takes.
const raceFactor = 10
