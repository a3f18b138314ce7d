package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	tempFolder string          // of this run
	browser    context.Context // the one Chromium; pages are contexts of it
)

// shotsFolder is where pictures of pages go.
const shotsFolder = "shots"

// everything is whether pages are looked at in each language, theme and width.
var everything = os.Getenv("TILL_E2E") == "full"

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if tempFolder, err = os.MkdirTemp("", "till-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(tempFolder)
	stop, err := startBrowser()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Chromium does not start (make e2e-tools installs it):", err)
		return 1
	}
	defer stop()
	return m.Run()
}

// startBrowser starts Chromium without its windows: they take more of the processor
// than the pages do. What it would fetch for itself is off: the only requests are those
// of pages.
func startBrowser() (func(), error) {
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(tempFolder+"/profile"), chromedp.WindowSize(1280, 900),
		chromedp.DisableGPU, chromedp.Flag("disable-component-update", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("lang", "en"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own sandbox does not run as root
	}
	allocated, free := chromedp.NewExecAllocator(context.Background(), options...)
	var quit context.CancelFunc
	browser, quit = chromedp.NewContext(allocated)
	if err := chromedp.Do(browser); err != nil {
		quit()
		free()
		return nil, err
	}
	return func() { quit(); free() }, nil
}
