package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"till"
	"till/internal/loop"
	"till/store"
)

func TestClientsTakeTurns(t *testing.T) {
	t.Parallel()
	step := func(client, n byte) *store.Step {
		return &store.Step{ClientID: till.ID{client}, SubjectID: till.ID{client, n}, Lane: "post submit"}
	}
	for _, c := range []struct {
		steps []*store.Step
		want  string
	}{
		{nil, ""},
		{[]*store.Step{step(1, 1), step(1, 2), step(1, 3)}, "1.1 1.2 1.3"},
		{[]*store.Step{step(1, 1), step(1, 2), step(1, 3), step(1, 4), step(2, 1), step(3, 1), step(2, 2)}, "1.1 2.1 3.1 1.2 2.2 1.3 1.4"},
		{[]*store.Step{step(1, 1), step(2, 1), step(2, 2), step(2, 1), step(1, 1)}, "1.1 2.1 2.2"}, // some were read twice
	} {
		var got []string
		for _, s := range inTurns(c.steps) {
			got = append(got, fmt.Sprintf("%d.%d", s.SubjectID[0], s.SubjectID[1]))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("got %s, want %s", text, c.want)
		}
	}
}

// A read behind a crowd goes through all that is due. A claim does not wait for it, and no
// other such read begins meanwhile. The lane's next claim has what it found.
func TestAClaimDoesNotWaitForAReadBehindACrowd(t *testing.T) {
	t.Parallel()
	lanes := []string{"a", "b"}
	reads, found := make(chan *besideRead), make(chan []*store.Step)
	e := &Worker{
		crowds: map[string]*crowd{"a": {clients: []till.ID{{1}}}}, waker: loop.NewWaker(), besideDone: make(chan *besideRead, 1),
		readBeside: func(_ context.Context, r *besideRead) ([]*store.Step, error) {
			reads <- r
			return <-found, nil
		},
	}
	claim := func(lanes ...string) []*store.Step {
		t.Helper()
		steps, err := e.dueBesideCrowd(t.Context(), lanes, 10)
		if err != nil {
			t.Fatal(err)
		}
		return steps
	}
	if got := claim(lanes...); len(got) != 0 {
		t.Fatalf("the first claim has %v", got)
	}
	if r := <-reads; len(r.lanes) != 1 || r.lanes[0] != "a" || r.clients[0][0] != (till.ID{1}) {
		t.Fatalf("read is behind %v of %v", r.clients, r.lanes)
	}
	if got := claim(lanes...); len(got) != 0 { // a second read would wait for the test for ever
		t.Fatalf("a claim during the read has %v", got)
	}
	found <- []*store.Step{{ClientID: till.ID{2}, Lane: "a"}, {ClientID: till.ID{3}, Lane: "b"}}
	<-e.waker.C()
	if got := claim("b"); len(got) != 0 {
		t.Errorf("a claim of another lane has %v", got)
	}
	if got := claim(lanes...); len(got) != 1 || got[0].ClientID != (till.ID{2}) {
		t.Errorf("the next claim has %v", got)
	}
	if got := claim(lanes...); len(got) != 0 {
		t.Errorf("a step was handed out again: %v", got)
	}
	e.tasks.Wait()
}

func TestACrowdIsWhoTakesAllPlacesOfALane(t *testing.T) {
	t.Parallel()
	e := &Worker{crowds: map[string]*crowd{}}
	var steps []*store.Step
	for n := range 40 { // the first has most, then one has two, all others have one
		client := till.ID{1, byte(max(0, n-10))}
		if n == 39 {
			client = till.ID{1, 5}
		}
		steps = append(steps, &store.Step{ClientID: client, Lane: "a"})
	}
	lanes := []string{"a", "b"}
	e.noteCrowds(lanes, []int{40, 40}, steps)
	c := e.crowds["a"]
	if c == nil || e.crowds["b"] != nil {
		t.Fatalf("the crowds are %v", e.crowds)
	}
	if len(c.clients) != store.MaxCrowd || c.clients[0] != (till.ID{1, 0}) || c.clients[1] != (till.ID{1, 5}) {
		t.Errorf("the crowd is %v", c.clients)
	}
	if e.noteCrowds(lanes, []int{41, 41}, steps); len(e.crowds) != 0 {
		t.Errorf("a lane with places left has a crowd: %v", e.crowds)
	}
}

// On a distributed database each node's steps are claimed by themselves. The node with a
// crowd must not always be first: it would use up what an operator allows.
func TestNodesTakeTurns(t *testing.T) {
	t.Parallel()
	s := spread{claims: map[int]int{}}
	stepsOn := func(nodes ...byte) (steps []*store.Step) { // a client's node is its first byte
		for _, node := range nodes {
			steps = append(steps, &store.Step{ClientID: till.ID{node}})
		}
		return steps
	}
	nodeOf := func(client till.ID) int { return int(client[0]) }
	served := map[int]int{}
	for range 30 {
		nodes, of := s.byNode(stepsOn(1, 1, 2, 1, 3), nodeOf) // the crowd's node has the longest due step
		if len(of[1]) != 3 || len(of[2]) != 1 || len(of[3]) != 1 {
			t.Fatalf("steps by node: %v", of)
		}
		served[nodes[0]]++
		s.claimed(nodes[0]) // the first takes all that is allowed
	}
	for node := 1; node <= 3; node++ {
		if served[node] != 10 {
			t.Errorf("node %d was first %d times of 30", node, served[node])
		}
	}
	if nodes, _ := s.byNode(stepsOn(1, 4), nodeOf); nodes[0] != 4 {
		t.Errorf("nodes %v: one that was never served is not first", nodes)
	}
}
