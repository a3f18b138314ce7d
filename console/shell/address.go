package shell

import (
	"encoding/base64"

	"till"
)

// SealText makes a text fit for an address; OpenText reads it again, of this
// merchant only, or of the house.
func (v *Visit) SealText(text string) string {
	return base64.RawURLEncoding.EncodeToString(v.Console.addresses.Seal([]byte(text), v.sealedFor()))
}

func (v *Visit) sealedFor() []byte {
	if v.Client == nil {
		return till.House[:]
	}
	return v.Client.ID[:]
}

func (v *Visit) OpenText(sealed string) (string, bool) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", false
	}
	text, err := v.Console.addresses.Open(b, v.sealedFor())
	return string(text), err == nil
}
