package engine

import (
	"encoding/base32"
	"strings"
)

// erasedVersions is added to the body version of a row when its person's data is erased. Its
// body hash is then one under the installation's secret: a plain hash of a body that is known
// but for a phone of nine digits can be tried out. A release that does not know such a
// version answers a replay with 503.
const erasedVersions = 1000

// ErasedMark begins what an erased row has instead of a phone.
const ErasedMark = "~"

// ErasedPhone returns what an erased row has instead of a phone: the same for each row of the
// phone, and no phone for people.
func (k Keys) ErasedPhone(phone string) string {
	sum := k.derive("erased phone", []byte(phone))
	return ErasedMark + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// knownPhone returns a row's phone, "" if it was erased: what a row has instead proves nothing
// about the number that an operator names.
func knownPhone(phone string) string {
	if strings.HasPrefix(phone, ErasedMark) {
		return ""
	}
	return phone
}

// ErasedHash returns the body hash and body version of an erased row.
func (k Keys) ErasedHash(hash [32]byte, version int) ([32]byte, int) {
	return [32]byte(k.derive("erased body", hash[:])), version + erasedVersions
}

// BodyHash returns the hash of a call's body as a row of a version has it; false if this
// program does not know the version.
func (k Keys) BodyHash(hash func(version int) ([32]byte, bool), version int) (sum [32]byte, ok bool) {
	if version < erasedVersions {
		return hash(version)
	}
	if sum, ok = hash(version - erasedVersions); ok {
		sum, _ = k.ErasedHash(sum, version)
	}
	return sum, ok
}
