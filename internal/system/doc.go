// Package system is what operating systems do differently: locks on files, who
// may read them, whether a process runs, the words of the network. Everything
// else is the same on Linux, macOS and Windows.
package system
