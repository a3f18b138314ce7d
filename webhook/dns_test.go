package webhook

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
)

// zone is a name server that lives in memory and knows the names of
// testdata/zone.txt under example.com.
type zone struct {
	mu      sync.Mutex
	answers map[string][][]string // "name type": the values of the first, second … answer
	asked   map[string]int        // how often, by name, record and question
	silent  bool                  // answers nothing, ever
}

const (
	typeA     = 1
	typeCNAME = 5
	typeAAAA  = 28

	nameError = 3
)

func openZone(t *testing.T) *zone {
	t.Helper()
	z := &zone{answers: map[string][][]string{}, asked: map[string]int{}}
	f, err := os.Open("testdata/zone.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		kind, values, ok := strings.Cut(rest, " ")
		if strings.HasPrefix(name, "#") || !ok {
			continue
		}
		for answer := range strings.SplitSeq(values, "|") {
			z.answers[name+" "+kind] = append(z.answers[name+" "+kind], strings.Fields(answer))
		}
	}
	return z
}

// resolver asks the zone and nobody else.
func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go z.serve(theirs)
		return ours, nil
	}}
}

// serve answers questions in the form that DNS has on a stream: the length,
// then the message.
func (z *zone) serve(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, question); err != nil {
			return
		}
		if z.silent {
			continue
		}
		answer := z.answer(question)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (z *zone) answer(question []byte) []byte {
	labels := []string{}
	end := 12
	for question[end] != 0 {
		n := int(question[end])
		labels = append(labels, strings.ToLower(string(question[end+1:end+1+n])))
		end += 1 + n
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	name := strings.TrimSuffix(strings.Join(labels, "."), ".example.com")

	out := make([]byte, 12, 512)
	copy(out, question[:2])
	out = append(out, question[12:end+5]...) // the question again
	known, count := z.follow(name, kind, func(owner string, kind uint16, data []byte) {
		out = appendName(out, owner)
		out = binary.BigEndian.AppendUint16(out, kind)
		out = append(out, 0, 1, 0, 0, 0, 0) // of the Internet, to be forgotten at once
		out = binary.BigEndian.AppendUint16(out, uint16(len(data)))
		out = append(out, data...)
	})
	out[2], out[3] = 0x85, 0x80 // an answer, from who knows
	if !known {
		out[3] |= nameError
	}
	binary.BigEndian.PutUint16(out[4:], 1)
	binary.BigEndian.PutUint16(out[6:], uint16(count))
	return out
}

// follow adds the records of a name, behind its alias if it has one.
func (z *zone) follow(name string, kind uint16, add func(owner string, kind uint16, data []byte)) (known bool, count int) {
	for range 8 {
		if target := z.next(name, "CNAME", kind); len(target) == 1 {
			add(name, typeCNAME, appendName(nil, target[0]))
			count++
			name = target[0]
			continue
		}
		break
	}
	text := map[uint16]string{typeA: "A", typeAAAA: "AAAA"}[kind]
	for _, v := range z.next(name, text, kind) {
		add(name, kind, addrBytes(v, kind))
		count++
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	return count > 0 || z.answers[name+" A"] != nil || z.answers[name+" AAAA"] != nil, count
}

// addrBytes keeps a mapped address the sixteen bytes that it is on the wire.
func addrBytes(text string, kind uint16) []byte {
	a := netip.MustParseAddr(text)
	if kind == typeA {
		return a.AsSlice()
	}
	b := a.As16()
	return b[:]
}

func appendName(b []byte, name string) []byte {
	for label := range strings.SplitSeq(name+".example.com", ".") {
		b = append(b, byte(len(label)))
		b = append(b, label...)
	}
	return append(b, 0)
}

// next returns what a name's records of one type are in this answer. Those who
// ask for A and for AAAA are counted apart, because one lookup asks for both.
func (z *zone) next(name, record string, question uint16) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	all := z.answers[name+" "+record]
	if len(all) == 0 {
		return nil
	}
	asked := fmt.Sprint(name, record, question)
	n := min(z.asked[asked], len(all)-1)
	z.asked[asked]++
	return all[n]
}
