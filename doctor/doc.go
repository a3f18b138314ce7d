// Package doctor checks an installation for what could lose an acknowledged payment or stop
// the service, for 'till doctor'. It changes nothing, moves no money, and may run beside a
// server. What is wrong with the business itself (Trouble) is decided in one place, the
// status, and only repeated here.
//
// Start reading at doctor.go.
package doctor
