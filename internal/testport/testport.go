package testport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that may be chosen. Linux gives those from 32768 on to connections, other
// systems those from 49152 on.
const first, end = 10000, 32000

// Free returns an address of this machine on which nobody listens.
func Free() (string, error) {
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(end-first)))
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("no port is free")
}
