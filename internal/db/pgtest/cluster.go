package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"till/internal/testport"
)

// Cluster is one PostgreSQL server.
type Cluster struct {
	Port int

	bin  string // the folder of the programs
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the server has ended
	log  *os.File
}

// startTimeout is how long a server has to answer its first connection.
const startTimeout = 30 * time.Second

// maxSocket is how long the name of a folder may be that has a socket in it: the
// system takes 107 bytes, with the socket's own name.
const maxSocket = 85

// New makes a cluster with extra settings and starts it.
func New(ctx context.Context, settings ...string) (*Cluster, error) {
	return newIn(ctx, "", settings...)
}

// NewInMemory is New for a cluster that need not survive the machine: nothing is
// flushed, and its files are in memory where there is room. Tests make and drop
// hundreds of databases of hundreds of files each; on a disk that takes more CPU
// than what the tests do with them.
func NewInMemory(ctx context.Context, settings ...string) (*Cluster, error) {
	// Shared memory is a file in its folder: a server that is killed leaves none behind.
	return newIn(ctx, Memory(), append([]string{"fsync = off", "max_wal_size = 256MB", "dynamic_shared_memory_type = mmap"}, settings...)...)
}

// roomInMemory is how many bytes must be free there.
const roomInMemory = 4 << 30

// noExec is the flag of a file system from which no program is started, as of many containers.
const noExec = 8

// Memory returns a folder whose files are in memory, or "" if there is none with room.
func Memory() string {
	const dir = "/dev/shm"
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Flags&noExec != 0 || uint64(s.Bavail)*uint64(s.Bsize) < roomInMemory {
		return ""
	}
	return dir
}

func newIn(ctx context.Context, folder string, settings ...string) (*Cluster, error) {
	bin, err := find(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(folder, "till-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, dir: dir}
	if err := c.own(); err != nil {
		c.Remove()
		return nil, err
	}
	if out, err := c.command(ctx, "initdb", "-D", c.data(), "-U", "till", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput(); err != nil {
		c.Remove()
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if err := c.configure(settings...); err != nil {
		c.Remove()
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// configure appends settings, and chooses a free port.
func (c *Cluster) configure(settings ...string) error {
	address, err := testport.Free()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	c.Port, _ = strconv.Atoi(port)
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	socket := c.dir
	if len(socket) > maxSocket {
		socket = "" // the server would refuse to start
	}
	fmt.Fprintf(f, "\nlisten_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\nmax_connections = 200\n", c.Port, socket)
	for _, s := range settings {
		fmt.Fprintln(f, s)
	}
	return nil
}

// Start starts the server and waits until it answers. The children of a server
// that was killed outlive it by moments and keep its memory: until they are gone
// the next one ends at once and is started again.
func (c *Cluster) Start(ctx context.Context) error {
	for deadline := time.Now().Add(startTimeout); ; {
		err := c.start(ctx, deadline)
		if err == nil || !strings.Contains(err.Error(), "pre-existing shared memory block") || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		if err := os.Truncate(filepath.Join(c.dir, "log"), 0); err != nil {
			return err
		}
	}
}

func (c *Cluster) start(ctx context.Context, deadline time.Time) error {
	var err error
	if c.log, err = os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	c.cmd = c.command(context.WithoutCancel(ctx), "postgres", "-D", c.data())
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		cmd.Wait()
		close(done)
	}(c.cmd, c.done)
	for {
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.done:
			c.log.Close()
			return errors.New("the server ended: " + c.tail())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			c.Kill()
			return fmt.Errorf("the server does not answer: %w: %s", err, c.tail())
		}
	}
}

// SocketURL returns the address of a database by the server's socket.
func (c *Cluster) SocketURL(database string) string {
	return "postgres://till@/" + database + "?" + url.Values{"host": {c.dir}, "port": {strconv.Itoa(c.Port)}}.Encode()
}

// URL returns the address of a database.
func (c *Cluster) URL(database string) string {
	return "postgres://till@127.0.0.1:" + strconv.Itoa(c.Port) + "/" + database + "?sslmode=disable"
}

// Create makes an empty database beside the others.
func (c *Cluster) Create(ctx context.Context, database string) error {
	return c.exec(ctx, "postgres", "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
}

// Drop removes a database and all that is in it.
func (c *Cluster) Drop(ctx context.Context, database string) error {
	return c.exec(ctx, "postgres", "DROP DATABASE "+pgx.Identifier{database}.Sanitize())
}

// Checkpoint writes to the disk what is still only in the server's memory.
func (c *Cluster) Checkpoint(ctx context.Context) error { return c.exec(ctx, "postgres", "CHECKPOINT") }

// Vacuum does at once what the server would do in the minutes after a table was
// filled: it counts what is there, marks what everybody sees, and writes to the
// disk what is still only in its memory.
func (c *Cluster) Vacuum(ctx context.Context, database string) error {
	if err := c.exec(ctx, database, "VACUUM (ANALYZE)"); err != nil {
		return err
	}
	return c.Checkpoint(ctx)
}

// Age gives a new server what one has that has run for some time: so many files
// of its write-ahead log that can be used again. A new one has to fill each with
// zeros first, while everybody waits who commits. How many it keeps is a matter
// of its min_wal_size.
func (c *Cluster) Age(ctx context.Context, files int) error {
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for range files {
		if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(false, 'age', '')"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SELECT pg_switch_wal()"); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, "CHECKPOINT")
	return err
}

func (c *Cluster) exec(ctx context.Context, database, statement string) error {
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

// Stop ends the server in order.
func (c *Cluster) Stop() { c.end(syscall.SIGINT) }

// Kill ends the server without a word, as a machine that loses its power.
func (c *Cluster) Kill() { c.end(syscall.SIGKILL) }

func (c *Cluster) end(s syscall.Signal) {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	// The whole group: the postmaster's children outlive it by moments
	// otherwise, and hold the port.
	if s == syscall.SIGKILL {
		syscall.Kill(-c.cmd.Process.Pid, s)
	} else {
		c.cmd.Process.Signal(s)
	}
	select {
	case <-c.done:
	case <-time.After(20 * time.Second):
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.done
	}
	c.log.Close()
}

// Remove stops the server if it runs and removes its folder.
func (c *Cluster) Remove() {
	if c.done != nil {
		select {
		case <-c.done:
		default:
			c.Stop()
		}
	}
	os.RemoveAll(c.dir)
}

// Standby makes a copy of the running cluster beside it that follows it, and
// starts it.
func (c *Cluster) Standby(ctx context.Context, name string) (*Cluster, error) {
	dir, err := os.MkdirTemp(filepath.Dir(c.dir), "till-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Cluster{bin: c.bin, dir: dir}
	if err := s.own(); err != nil {
		s.Remove()
		return nil, err
	}
	from := "host=127.0.0.1 port=" + strconv.Itoa(c.Port) + " user=till application_name=" + name
	if out, err := s.command(ctx, "pg_basebackup", "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "-d", from).CombinedOutput(); err != nil {
		s.Remove()
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	if err := s.configure(); err != nil {
		s.Remove()
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

// Promote makes a standby the primary.
func (c *Cluster) Promote(ctx context.Context) error {
	out, err := c.command(ctx, "pg_ctl", "promote", "-w", "-D", c.data()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_ctl promote: %w: %s", err, out)
	}
	return nil
}

// command returns a program of the server's, run as a user that it accepts.
func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+c.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid, gid, ok := unprivileged(); ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return cmd
}

// own gives the cluster's folder to the user that the server runs as.
func (c *Cluster) own() error { return own(c.dir) }

func own(dir string) error {
	uid, gid, ok := unprivileged()
	if !ok {
		return nil
	}
	return os.Chown(dir, int(uid), int(gid))
}

// Folder makes a folder for a tablespace. Its owner is the server's user.
func (c *Cluster) Folder(name string) (string, error) {
	dir := filepath.Join(c.dir, name)
	return dir, errors.Join(os.Mkdir(dir, 0o700), own(dir))
}

// unprivileged returns whom a root process runs the server as.
func unprivileged() (uid, gid uint32, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return uint32(uid), uint32(gid), true
		}
	}
	return 65534, 65534, true
}

// tail returns the end of the server's log.
func (c *Cluster) tail() string {
	b, _ := os.ReadFile(filepath.Join(c.dir, "log"))
	return string(b[max(0, len(b)-2000):])
}
