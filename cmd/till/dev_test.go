package main

import "testing"

func TestACommandIsOneLineInTheCommandPrompt(t *testing.T) {
	t.Parallel()
	const command = "curl -s http://x/v1 \\\n    -H 'X-Api-Key: k' \\\n    -d '{\"a\": \"b\",\n         \"c\": 1}'"
	if got := asTyped(command, "linux"); got != command {
		t.Errorf("Linux: %s", got)
	}
	if got, want := asTyped(command, "windows"), `curl -s http://x/v1 -H "X-Api-Key: k" -d "{\"a\": \"b\", \"c\": 1}"`; got != want {
		t.Errorf("Windows: %s\nwant:    %s", got, want)
	}
}
