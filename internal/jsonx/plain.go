package jsonx

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxPlain is the most bytes a body may have to be read as a plain one. What a
// shop sends has less than half a kilobyte; a long body is worth the full
// decoder's time, and no string keeps more than this alive.
const MaxPlain = 2 << 10

// plainTexts is for how many strings memory is taken at once: a create call
// without items has at most these.
const plainTexts = 12

// PlainDecoder is a value that Decode asks first whether it can read a body by
// itself, without reflection.
type PlainDecoder interface {
	// DecodePlain reads data with a Plain, or returns false and leaves the
	// value as it was. It must not accept what the full decoder refuses, nor
	// make anything else of it.
	DecodePlain(data []byte) bool
}

// Plain reads the everyday form of a body: known members, each once, no
// escapes, no null, numbers of digits only. On anything else, right or wrong,
// it gives up, for good: the methods then do nothing, and Done returns false.
// It says no reason, because the full decoder reads the body then and finds it.
//
// The methods fill what they are given only if it is empty, and give up if it
// is not. That is how a second member of the same name is noticed, and why a
// target that was filled before is left to the full decoder.
type Plain struct {
	text  string // a copy of the body, which all strings share
	at    int
	depth int
	texts []string // what Text points to

	first [plainTexts]string // the first of them, in the same piece of memory
}

// NewPlain returns a reader of data, of which it keeps nothing.
func NewPlain(data []byte) *Plain {
	if len(data) > MaxPlain || bytes.IndexByte(data, '\\') >= 0 || !utf8.Valid(data) {
		return &Plain{at: gaveUp}
	}
	p := &Plain{text: string(data)}
	p.texts = p.first[:0]
	return p
}

// gaveUp is the position of a reader that gave up.
const gaveUp = -1

// GiveUp leaves the body to the full decoder.
func (p *Plain) GiveUp() { p.at = gaveUp }

// Done reports whether the body has been read to its end.
func (p *Plain) Done() bool { return p.next() == 0 && p.at == len(p.text) }

// next skips white space and returns the byte after it, 0 at the end.
func (p *Plain) next() byte {
	if p.at == gaveUp {
		return 0
	}
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take steps over c if it comes next, and gives up if not.
func (p *Plain) take(c byte) {
	if p.next() != c {
		p.GiveUp()
		return
	}
	p.at++
}

// Object reads an object. It calls member with each name; member must read the
// value, or give up.
func (p *Plain) Object(member func(name string)) {
	p.list('{', '}', func() {
		name := p.string()
		p.take(':')
		if p.at != gaveUp {
			member(name)
		}
	})
}

// PlainObject reads an object into a new T. It calls member with each name;
// member must read the value, or give up.
func PlainObject[T any](p *Plain, to **T, member func(t *T, p *Plain, name string)) {
	if *to != nil {
		p.GiveUp()
		return
	}
	t := new(T)
	p.Object(func(name string) { member(t, p, name) })
	*to = t
}

// Array reads an array. It calls element to read each value.
func (p *Plain) Array(element func()) { p.list('[', ']', element) }

// list reads what stands between two brackets, with commas.
func (p *Plain) list(opening, closing byte, element func()) {
	p.take(opening)
	if p.depth++; p.depth > MaxDepth {
		p.GiveUp()
	}
	if p.at == gaveUp {
		return
	}
	if p.next() != closing {
		element()
		for p.next() == ',' {
			p.at++
			element()
		}
	}
	p.take(closing)
	p.depth--
}

// Text reads a string.
func (p *Plain) Text(to **string) {
	s := p.string()
	if p.at == gaveUp || *to != nil {
		p.GiveUp()
		return
	}
	// Who points into a list that is full keeps it; nobody changes a text.
	p.texts = append(p.texts, s)
	*to = &p.texts[len(p.texts)-1]
}

func (p *Plain) string() string {
	p.take('"')
	if p.at == gaveUp {
		return ""
	}
	for i := p.at; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			s := p.text[p.at:i]
			p.at = i + 1
			return s
		case c < ' ':
			p.GiveUp()
			return ""
		}
	}
	p.GiveUp()
	return ""
}

// Whole reads a whole number without a sign, as its digits. What may follow
// them in other numbers, a point or an exponent, ends the reading, because no
// comma and no bracket begins with it.
func (p *Plain) Whole(to *string) {
	first := p.next()
	if first < '0' || first > '9' || *to != "" {
		p.GiveUp()
		return
	}
	end := p.at + 1
	if first != '0' {
		for end < len(p.text) && '0' <= p.text[end] && p.text[end] <= '9' {
			end++
		}
	}
	*to = p.text[p.at:end]
	p.at = end
}

// Flag reads true or false.
func (p *Plain) Flag(to **bool) {
	word, flag := "true", true
	if p.next() == 'f' {
		word, flag = "false", false
	}
	if p.at == gaveUp || *to != nil || len(p.text)-p.at < len(word) || p.text[p.at:p.at+len(word)] != word {
		p.GiveUp()
		return
	}
	p.at += len(word)
	*to = &flag
}

// strict makes Compact refuse what Decode refuses.
var strict = []jsontext.Options{jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)}

// Raw reads an object of any members as its text, white space apart.
func (p *Plain) Raw(to *jsontext.Value) {
	if p.next() != '{' || *to != nil {
		p.GiveUp()
		return
	}
	start := p.at
	p.skipObject()
	if p.at == gaveUp {
		return
	}
	v := jsontext.Value(p.text[start:p.at])
	if v.Compact(strict...) != nil {
		p.GiveUp()
		return
	}
	*to = v
}

// skipObject steps over an object to the bracket that closes it. Which kind of
// bracket that is, and everything between them, is left to Raw.
func (p *Plain) skipObject() {
	outside := p.depth
	for p.at != gaveUp && p.at < len(p.text) {
		switch p.text[p.at] {
		case '"':
			p.string()
			continue
		case '{', '[':
			if p.depth++; p.depth > MaxDepth {
				p.GiveUp()
				return
			}
		case '}', ']':
			p.depth--
		}
		p.at++
		if p.depth == outside {
			return
		}
	}
	p.GiveUp()
}
