package handlers

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a process group of its own: php -S has workers.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a command that this test started, with its workers.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
