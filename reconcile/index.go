package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"

	"till"
)

// key is a reference or a receipt of a line: the 16 bytes of a UUID, or of a
// digest. Zero means that the line has none.
type key [16]byte

// tailDigits is how many digits of a payment's id M-Pesa shows as its account
// reference: the last ones, in capitals.
const tailDigits = 12

// tailKey returns the key of the end of an id. No UUID of ours looks like it.
func tailKey(id till.ID) key {
	var k key
	copy(k[len(k)-tailDigits/2:], id[len(id)-tailDigits/2:])
	return k
}

// isTail reports whether a key is of the end of an id.
func (k key) isTail() bool {
	return k != key{} && [len(k) - tailDigits/2]byte(k[:len(k)-tailDigits/2]) == [len(k) - tailDigits/2]byte{}
}

// isTailText reports whether a text is the end of an id as we send it. One
// without a letter may be anything: a phone number, an account at somebody's.
func isTailText(s string) bool {
	return len(s) == tailDigits && strings.Trim(s, "0123456789ABCDEF") == "" && strings.ContainsAny(s, "ABCDEF")
}

// referenceKey returns the key of a reference. All of ours are UUIDs, which
// operators show with or without the dashes, or the end of one; nothing else can
// be ours.
func referenceKey(s string) key {
	s = strings.TrimSpace(s)
	if id, err := till.ParseID(s); err == nil {
		return key(id)
	}
	var k key
	if isTailText(s) {
		hex.Decode(k[len(k)-tailDigits/2:], []byte(s))
		return k
	}
	if len(s) == 2*len(k) {
		if _, err := hex.Decode(k[:], []byte(s)); err == nil {
			return k
		}
	}
	return key{}
}

// receiptKey returns the key of an operator's receipt.
func receiptKey(s string) key {
	if s == "" {
		return key{}
	}
	sum := sha256.Sum256([]byte(s))
	return key(sum[:16])
}

// record is what is kept of a line of the file: 80 bytes without a pointer, so
// that a million lines are 80 MB and the collector need not scan them.
type record struct {
	keys      [3]key    // reference, external id, receipt
	amount    int64     // minor units
	at        till.Time // zero: the line does not say
	offset    int64     // of the line in the file, to read the rest of it again
	number    uint32    // of the line, from 1
	currency  uint8     // index in records.currencies
	status    lineStatus
	direction direction
	flags     uint8
}

const (
	byReference = iota
	byExternalID
	byReceipt
)

const (
	claimed  = 1 << iota // a payment or payout is found for it
	deferred             // one may be: its receipt fits, its reference does not
	outside              // not of the time that is compared
)

// chunkSize is how many records are allocated at once: what grows in pieces is
// never copied.
const chunkSize = 1 << 14

// records are the lines of a file, and an index of each kind of key.
type records struct {
	chunks     [][]record
	n          int
	currencies []string
	indexes    [3]*index
}

func (r *records) at(i uint32) *record { return &r.chunks[i/chunkSize][i%chunkSize] }

func (r *records) add(line record) {
	if r.n%chunkSize == 0 {
		r.chunks = append(r.chunks, make([]record, 0, chunkSize))
	}
	last := len(r.chunks) - 1
	r.chunks[last] = append(r.chunks[last], line)
	r.n++
}

// currencyIndex returns the index of a currency, which is known to exist.
func (r *records) currencyIndex(code string) uint8 {
	for i, c := range r.currencies {
		if c == code {
			return uint8(i)
		}
	}
	r.currencies = append(r.currencies, strings.Clone(code))
	return uint8(len(r.currencies) - 1)
}

func (r *records) money(line *record) till.Money {
	return till.Money{Minor: line.amount, Currency: r.currencies[line.currency]}
}

// build makes the indexes, once all lines are there.
func (r *records) build() {
	for kind := range r.indexes {
		x := &index{records: r, kind: kind, seed: maphash.MakeSeed()}
		for i := range uint32(r.n) {
			if r.at(i).keys[kind] != (key{}) {
				x.entries++
			}
		}
		if x.entries == 0 {
			continue
		}
		size := 16
		for size < 2*x.entries {
			size *= 2
		}
		x.slots, x.next = make([]uint32, size), make([]uint32, r.n)
		for i := range uint32(r.n) {
			x.put(i)
		}
		r.indexes[kind] = x
	}
}

// index finds lines by a key: an open table of the newest line with each key,
// from which a chain leads to the older ones. So a file that repeats one key a
// million times is no slower than another.
type index struct {
	records *records
	kind    int
	seed    maphash.Seed
	entries int
	slots   []uint32 // 1 + the number of a record; 0 is free
	next    []uint32 // the same, of the line before with the same key
}

func (x *index) slot(k *key) int {
	mask := len(x.slots) - 1
	i := int(maphash.Bytes(x.seed, k[:])) & mask
	for x.slots[i] != 0 && x.records.at(x.slots[i] - 1).keys[x.kind] != *k {
		i = (i + 1) & mask
	}
	return i
}

func (x *index) put(line uint32) {
	k := &x.records.at(line).keys[x.kind]
	if *k == (key{}) {
		return
	}
	i := x.slot(k)
	x.next[line] = x.slots[i]
	x.slots[i] = line + 1
}

// find appends the lines with a key to a list, newest first.
func (x *index) find(k key, lines []uint32) []uint32 {
	if x == nil || k == (key{}) {
		return lines
	}
	for i := x.slots[x.slot(&k)]; i != 0; i = x.next[i-1] {
		lines = append(lines, i-1)
	}
	return lines
}

// twin returns the first line with the same receipt and status under another
// reference, if there is one.
func (r *records) twin(line uint32) (uint32, bool) {
	x, a := r.indexes[byReceipt], r.at(line)
	if x == nil || a.keys[byReceipt] == (key{}) {
		return 0, false
	}
	found, twin := false, uint32(0)
	// A receipt that is on more lines than this is no receipt.
	const most = 1000
	n := 0
	for i := x.slots[x.slot(&a.keys[byReceipt])]; i != 0 && n < most; i, n = x.next[i-1], n+1 {
		b := r.at(i - 1)
		if i-1 != line && b.status == a.status && (b.keys[byReference] != a.keys[byReference] || b.keys[byExternalID] != a.keys[byExternalID]) {
			found, twin = true, i-1
		}
	}
	return twin, found
}
