package people

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"till/internal/seal"

	"till"
)

// A device token says that somebody has signed in with a login on a browser before. It
// opens nothing. It gives the browser a count of failures of its own, so that those who
// guess passwords elsewhere delay nobody who has signed in here before. It ends with the
// key that sealed it: who has an old key could write endless ones, each with guesses of its
// own.
const (
	deviceLabel = "till devices v1"

	// DeviceWindow is how long a device is remembered after a sign-in.
	DeviceWindow = 180 * 24 * time.Hour
	// MaxDevices is how many device tokens of one browser are looked at: so many
	// people share it.
	MaxDevices = 4

	deviceSize = 16 + sha256.Size + 8 // a random name, the login's, the end
)

// devices seals device tokens.
type devices struct {
	sealer *seal.Sealer
	now    func() till.Time
}

// NewDevice returns a token for a browser on which somebody has just signed in.
func (p *devices) NewDevice(login string) string {
	body := make([]byte, 16, deviceSize)
	rand.Read(body)
	name := loginName(login)
	body = append(body, name[:]...)
	body = binary.BigEndian.AppendUint64(body, uint64(p.now().Add(DeviceWindow)))
	return base64.RawURLEncoding.EncodeToString(p.sealer.Seal(body, nil))
}

// DeviceIsOf reports whether a token is a login's.
func (p *devices) DeviceIsOf(token, login string) bool {
	_, of, known := p.openDevice(token)
	return known && of == loginName(login)
}

// openDevice returns the count's name and the login's name of a token.
func (p *devices) openDevice(token string) (name, login [32]byte, known bool) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return name, login, false
	}
	body, err := p.sealer.Open(sealed, nil)
	if err != nil || len(body) != deviceSize || p.now() >= till.Time(binary.BigEndian.Uint64(body[16+sha256.Size:])) {
		return name, login, false
	}
	return sha256.Sum256(append([]byte("device "), body[:16]...)), [32]byte(body[16 : 16+sha256.Size]), true
}

// KnownDevice names the device of a visit that somebody has signed in on before;
// "" if there is none.
func (p *devices) KnownDevice(v Visit) string {
	name, known := p.deviceOf(v, "")
	if !known {
		return ""
	}
	return "device " + base64.RawURLEncoding.EncodeToString(name[:])
}

// deviceOf returns the count of the device, if the login has signed in on it
// before; for the login "" anybody.
func (p *devices) deviceOf(v Visit, login string) (name [32]byte, known bool) {
	for i, token := range v.Tokens {
		if i == MaxDevices {
			break
		}
		if device, of, known := p.openDevice(token); known && (login == "" || of == loginName(login)) {
			return device, true
		}
	}
	return name, false
}
