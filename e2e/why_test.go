package e2e

import (
	"bufio"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// E5: the sentence says what is going on and who is next, in both languages.
func TestE5Why(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--approval-window", "3s")
	p := newPage(t, "E5", s.origin)
	p.enterDemo(s, "Awa")
	french := newPage(t, "E5", s.origin)
	french.enterDemo(s, "Brice")
	french.speak("fr")
	stuck := s.pay("242061230014", "5000", "ORDER-1", nil)
	amount := s.pay("242061230019", "5000", "ORDER-2", nil)
	late := s.pay("242061230013", "5000", "ORDER-3", nil)
	back := s.pay("242061230021", "5000", "ORDER-4", nil)
	for _, c := range []struct{ id, event, name, en, fr string }{
		{amount, "payment.needs_attention", "mismatch", "MTN MoMo reports", "pour 5 000 XAF demandés. Mis en attente ; une personne décide."},
		{late, "payment.late_success", "late", "Ended as Expired, but the money came at", "Terminé comme Expiré, mais l’argent est arrivé à"},
		{back, "payment.reversed", "taken-back", "Paid, then MTN MoMo took it back at", "Payé, puis repris par MTN MoMo à"},
		{stuck, "payment.needs_attention", "attention", "MTN MoMo has not decided for", "MTN MoMo n’a pas tranché depuis"},
	} {
		s.untilEvent(c.id, c.event)
		p.open("/console/c/" + s.client + "/payments/" + c.id)
		p.seesSentence(c.en)
		p.look(c.name)
		p.speak("fr")
		p.seesSentence(c.fr)
		p.dress("dark", narrow)
		p.inspect(c.name)
		p.dress("light", wide)
		p.speak("en")
	}
	french.reads(s, "Le délai du client est passé ; MTN MoMo n’a pas encore donné l’issue.")
	p.reads(s, "The customer's time is over; MTN MoMo has not said how it ended. Not failed: they may have paid.")
}

// reads waits for a sentence that stands for a second only, between the end of
// the customer's time and the case: it asks for the page faster than a browser
// shows it, and takes another payment if it has missed the moment.
func (p *page) reads(s *till, sentence string) {
	p.t.Helper()
	for range 8 {
		path := "/console/c/" + s.client + "/payments/" + s.pay("242061230014", "5000", "ORDER-5", nil)
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			text := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(html.UnescapeString(p.get(path, "text/html")))
			if strings.Contains(text, sentence) {
				return
			}
			if strings.Contains(text, `<section class="going examine"`) {
				break
			}
		}
	}
	p.t.Errorf("%s: nobody says %q", p.story, sentence)
}

// E5: an operator that does not confirm, and one that has stopped.
func TestE5AnOperatorThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	operator, settings, secrets := startSimulator(t, "mtnmomo", "--lost-response", "1")
	data := t.TempDir()
	file := filepath.Join(data, "till.toml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServeWith(t, secrets, data, "--config", file)
	var client struct {
		ClientID string `json:"client_id"`
		APIKey   string `json:"api_key"`
	}
	s.runJSON(&client, "client", "create", "--name", "Boulangerie Mapassa", "--mode", "live")
	s.key, s.client = client.APIKey, client.ClientID
	s.run("client", "methods", s.client, "--enable", "mtn_momo")
	p := s.join("E5s", "cashier", "Inès")

	unsure := s.pay("242061234567", "5000", "ORDER-1", nil)
	p.open("/console/c/" + s.client + "/payments/" + unsure)
	p.seesSentence("MTN MoMo did not confirm. We are asking. It may have reached the customer.")
	p.look("unsure")
	p.speak("fr")
	p.seesSentence("MTN MoMo n’a pas confirmé. Nous vérifions. Le client l’a peut-être reçu.")
	p.speak("en")

	operator()
	unsent := ""
	for range 14 { // from the tenth on the method may be closed
		if id := s.tryPay("242061234567"); id != "" {
			unsent = id
		}
	}
	p.open("/console/c/" + s.client + "/payments/" + unsent)
	p.seesSentence("Not sent yet: MTN MoMo has not answered since")
	p.look("stopped")
	p.speak("fr")
	p.seesSentence("Pas encore envoyé : MTN MoMo ne répond plus depuis")
	p.dress("dark", narrow)
	p.inspect("stopped")
}

func (p *page) seesSentence(text string) {
	p.t.Helper()
	p.until(`document.querySelector(".going .say")?.innerText.replace(/[\u00a0\u202f]/g, " ").includes(` + quote(text) + `)`)
}

// tryPay asks for money from a method that may be closed.
func (s *till) tryPay(phone string) string {
	s.t.Helper()
	body := strings.NewReader(`{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"customer":{"phone":"` + phone + `"},"idempotency_key":"` + newUUID() + `"}`)
	r, err := http.NewRequest(http.MethodPost, s.origin+"/v1/payments", body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", s.key)
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusAccepted {
		return ""
	}
	return filepath.Base(a.Header.Get("Location"))
}

// join invites a person by the command, who joins with a password.
func (s *till) join(story, role, name string) *page {
	s.t.Helper()
	p := newPage(s.t, story, s.origin)
	p.open(s.invite("--client", s.client, "--role", role, "--name", name, "--login", role+"."+newUUID()[:8]+"@example.com"))
	p.fill("#password", password)
	p.submit(`form[action^="/console/join/"] > button:last-of-type`)
	p.until(`location.pathname.startsWith("/console/c/")`)
	return p
}

// startSimulator starts the simulated side of an operator, and returns how to
// stop it, the configuration of a connection to it, and its credentials.
func startSimulator(t *testing.T, operator string, args ...string) (stop func(), settings string, secrets []string) {
	t.Helper()
	binary, err := buildTill()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, append([]string{"simulate", operator, "--listen", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	configuration := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "Stop with") {
			return stop, settings, secrets
		}
		if rest, ok := strings.CutPrefix(line, "export "); ok {
			secrets = append(secrets, strings.ReplaceAll(rest, "'", ""))
		}
		configuration = configuration || strings.HasPrefix(line, "[[")
		if configuration {
			settings += line + "\n"
		}
	}
	t.Fatal("the simulated operator is not ready")
	return nil, "", nil
}
