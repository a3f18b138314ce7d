package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// maxFile is the longest file of a certificate or key in bytes.
const maxFile = 256 << 10

// Files is a certificate and its key in two files of PEM.
type Files struct {
	cert, key string
	log       *slog.Logger
	current   atomic.Pointer[tls.Certificate]

	mu      sync.Mutex // of checks
	taken   []byte     // the files' bytes
	refused []byte     // those that were last refused, so that the log says it once
}

// OpenFiles reads a certificate and its key. A pair that does not fit is an error. One
// that is not valid now is taken at a start, with an error in the log: the service must
// not neglect its open payments because of it.
func OpenFiles(cert, key string, log *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log}
	pair, text, err := f.read()
	if err != nil {
		return nil, err
	}
	if err := validNow(pair); err != nil {
		log.Error("certificate not valid", "file", cert, "error", err)
	}
	f.current.Store(pair)
	f.taken = text
	return f, nil
}

// read reads the pair. It returns the files' bytes even if they do not fit.
func (f *Files) read() (*tls.Certificate, []byte, error) {
	cert, err := readFile(f.cert)
	if err != nil {
		return nil, nil, err
	}
	key, err := readFile(f.key)
	if err != nil {
		return nil, nil, err
	}
	text := bytes.Join([][]byte{cert, key}, []byte{0})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // its texts show nothing of the key
		return nil, text, fmt.Errorf("the certificate %s and the key %s cannot be used together: %w", f.cert, f.key, err)
	}
	return &pair, text, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return b, nil
}

func validNow(c *tls.Certificate) error {
	now := time.Now()
	switch {
	case now.After(c.Leaf.NotAfter):
		return fmt.Errorf("the certificate expired on %s", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.Leaf.NotBefore):
		return fmt.Errorf("the certificate is valid from %s only", c.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// GetCertificate implements Source.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.current.Load(), nil
}

// Look implements Source. A pair that is not taken is tried again at the next call: two
// files cannot be replaced at once.
func (f *Files) Look(_ context.Context, now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pair, text, err := f.read()
	if err == nil && bytes.Equal(text, f.taken) {
		f.refused = nil
		return
	}
	if err == nil {
		err = validNow(pair)
	}
	if err != nil {
		why := append([]byte(err.Error()), text...)
		if now || !bytes.Equal(why, f.refused) {
			f.log.Warn("certificate not taken", "file", f.cert, "error", err)
		}
		f.refused = why
		return
	}
	f.current.Store(pair)
	f.taken, f.refused = text, nil
	f.log.Info("certificate taken", "file", f.cert, "expires", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// Validity implements Source.
func (f *Files) Validity() (begins, ends time.Time) {
	leaf := f.current.Load().Leaf
	return leaf.NotBefore, leaf.NotAfter
}

// Name implements Source.
func (f *Files) Name() string { return "file" }
