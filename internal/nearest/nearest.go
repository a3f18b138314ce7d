package nearest

import (
	"strings"
	"unicode/utf8"
)

// maxWord is the longest word that is compared, so that nobody can make us compare
// novels.
const maxWord = 64

// Word returns the one of known that word was probably meant to be, "" if none is
// near. Case and separators do not count: idempotencyKey is idempotency_key. Of two that
// are equally near, the first is returned.
func Word(word string, known []string) string {
	if word == "" || len(word) > maxWord || !utf8.ValidString(word) {
		return ""
	}
	w := plain(word)
	best, least := "", len(w)/3+1
	for _, k := range known {
		if d := distance(w, plain(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" && len(w) >= 3 { // "mtn" for "mtn_momo"
		for _, k := range known {
			if strings.Contains(plain(k), w) {
				return k
			}
		}
	}
	return best
}

// Hint returns "; did you mean …?" for the nearest word, "" if there is none.
func Hint(word string, known []string) string {
	if k := Word(word, known); k != "" {
		return `; did you mean "` + k + `"?`
	}
	return ""
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func plain(word string) string { return separators.Replace(strings.ToLower(word)) }

// distance returns how many letters must be added, dropped, replaced or swapped with
// their neighbour to make one word the other.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
