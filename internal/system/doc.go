// Package system is what operating systems do differently: file locks, file
// permissions, whether a process runs, and network error codes. All other code is
// the same on Linux, macOS and Windows.
package system
