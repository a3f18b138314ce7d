package pay

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"time"

	"till"
)

// A form holds what it was made for: the page, the number of the ask that it makes, and when.
// So a form of another page does nothing, one that is sent twice makes one ask, and a program
// that posts what it has not read is noticed. A link's form has a nonce, too, which names the
// checkout that it opens.
const (
	formYoungest = time.Second
	formOldest   = 2 * time.Hour

	formHead  = 10 // bytes: when and which ask
	formNonce = 16
)

// newForm returns the seal of a form that makes the nth ask.
func (v *visit) newForm(n int) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, formHead+formNonce), uint64(v.now().UnixMilli()))
	b = binary.BigEndian.AppendUint16(b, uint16(min(n, till.MaxAskRows+1)))
	if v.view.Link != nil {
		b = b[:formHead+formNonce]
		rand.Read(b[formHead:]) // never returns an error; it crashes the program instead
	}
	return base64.RawURLEncoding.EncodeToString(v.p.forms.Seal(b, []byte(v.token)))
}

// formAge is whether a form may be used.
type formAge int

const (
	formGood formAge = iota
	formStale
	formNone // it is not ours, or of another page
)

// readForm returns the number of the ask that a form was made for, and its nonce if it is a
// link's.
func (v *visit) readForm(text string) (n int, nonce []byte, age formAge) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) > 200 {
		return 0, nil, formNone
	}
	b, err := v.p.forms.Open(sealed, []byte(v.token))
	if err != nil || len(b) != formHead && len(b) != formHead+formNonce || len(b) > formHead != (v.view.Link != nil) {
		return 0, nil, formNone
	}
	n, nonce = int(binary.BigEndian.Uint16(b[8:])), b[formHead:]
	made := v.now().Sub(time.UnixMilli(int64(binary.BigEndian.Uint64(b))))
	if made < formYoungest || made > formOldest {
		return n, nonce, formStale
	}
	return n, nonce, formGood
}

func (v *visit) now() time.Time { return v.p.now() }
