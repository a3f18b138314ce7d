package engine

import (
	"bytes"
	"testing"

	"till"
	"till/internal/seal"
	"till/store"
)

// A rotation changes callback tokens, and those of both generations are ours until the old one
// is retired. What derives from the root stays.
func TestWhatARotationChanges(t *testing.T) {
	t.Parallel()
	root, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	both := map[int][]byte{1: root, 2: second}
	ring, err := seal.NewRing(both, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	set := func(use int, retired ...int) {
		t.Helper()
		if err := ring.Set(both, use, retired); err != nil {
			t.Fatal(err)
		}
	}
	k := newKeys(till.SubjectPayment, root, ring)
	ref := store.Ref{Client: till.ID{1}, ID: till.ID{2}}
	ours := func(token string) bool {
		got, ok := k.parseCallbackToken("momo", token)
		return ok && got == ref
	}
	first, reference, phone := k.CallbackToken("momo", ref), k.Reference(ref.Client, till.ID{3}.String()), k.ErasedPhone("242061234567")
	if first != NewKeys(till.SubjectPayment, root).CallbackToken("momo", ref) {
		t.Error("the first generation gives other tokens than the secret did alone")
	}
	set(2)
	then := k.CallbackToken("momo", ref)
	if then == first || !ours(first) || !ours(then) || ours(first[:len(first)-1]) {
		t.Error("the token did not change, or one of both generations is not ours, or any is")
	}
	if k.Reference(ref.Client, till.ID{3}.String()) != reference || k.ErasedPhone("242061234567") != phone {
		t.Error("a rotation changed what derives from the root")
	}
	set(2, 1)
	if ours(first) || !ours(then) {
		t.Error("a token of a retired generation is ours, or none is")
	}
}
