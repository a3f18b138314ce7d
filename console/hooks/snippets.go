package hooks

import _ "embed"

// How a receiver verifies a delivery, word for word from docs/guide/webhook-receivers.md,
// whose examples a test runs. The key is the secret's base64 after whsec_.
var (
	//go:embed snippet/verify.go.txt
	verifyGo string
	//go:embed snippet/verify.js.txt
	verifyNode string
	//go:embed snippet/verify.py.txt
	verifyPython string
)

var verifySnippets = []struct{ name, code string }{{"Go", verifyGo}, {"Node", verifyNode}, {"Python", verifyPython}}
