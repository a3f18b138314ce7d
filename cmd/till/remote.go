package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/internal/dev/remote"
	"till/internal/system"
)

// remoteFlags say which service a command calls, and with which key.
type remoteFlags struct {
	baseURL, apiKey, data string
	live                  bool
}

func (r *remoteFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.baseURL, "base-url", "", "the URL of the API, ending in /v1 (default the running 'till dev')")
	f.StringVar(&r.apiKey, "api-key", "", "the client's key, better given as TILL_API_KEY (default the demo key of 'till dev')")
	f.StringVar(&r.data, "data", "./till-data", "the folder of 'till dev'")
	f.BoolVar(&r.live, "live", false, "allow the key of a live client, whose payments are real")
}

// client returns the service and the key to use there.
func (r *remoteFlags) client() (*remote.Client, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	if !r.live && !strings.HasPrefix(r.apiKey, "till_test_") {
		if strings.HasPrefix(r.apiKey, "till_live_") {
			return nil, errors.New("this is the key of a live client: with --live, real payments are meant")
		}
		return nil, errors.New("--api-key is no key of a test client (till_test_...)")
	}
	return remote.New(r.baseURL, r.apiKey)
}

// complete takes what was not given from the folder of a running till dev. The demo key
// goes to this machine only.
func (r *remoteFlags) complete() error {
	if r.apiKey == "" {
		if u, err := url.Parse(r.baseURL); r.baseURL != "" && (err != nil || !system.IsLoopback(u.Host)) {
			return errors.New("give the client's key for this service: TILL_API_KEY, or --api-key")
		}
		var demo struct {
			APIKey string `json:"api_key"`
		}
		file := filepath.Join(r.data, "demo-key.json")
		if err := readJSONFile(file, &demo); err != nil || demo.APIKey == "" {
			return fmt.Errorf("there is no key in %s: start 'till dev' beside it, name its folder with --data, or set TILL_BASE_URL and TILL_API_KEY", file)
		}
		r.apiKey = demo.APIKey
	}
	if r.baseURL == "" {
		var at devAddress
		if err := readJSONFile(devAddressFile(r.data), &at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if r.baseURL = at.BaseURL; r.baseURL == "" {
			r.baseURL = "http://" + cli.DefaultListen + "/v1"
		}
	}
	return nil
}

func readJSONFile(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// devAddress is where a running till dev serves the API, for the commands beside it.
type devAddress struct {
	BaseURL string `json:"base_url"`
}

func devAddressFile(data string) string { return filepath.Join(data, "address.json") }

// tellAddress writes where till dev serves the API; forget removes it.
func tellAddress(data, baseURL string) (forget func(), err error) {
	text, err := json.Marshal(devAddress{baseURL})
	if err != nil {
		return nil, err
	}
	file := devAddressFile(data)
	return func() { os.Remove(file) }, os.WriteFile(file, append(text, '\n'), 0o600)
}
