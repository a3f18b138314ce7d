// Command till collects money from mobile money wallets: 'till dev' to try it
// on this machine, 'till serve' to run it, and the commands of whoever
// operates it.
//
// Every command takes --json; every flag can be given as an environment
// variable (--base-url is TILL_BASE_URL), and a flag on the command line wins.
// All but dev, serve and migrate work beside a running server and change
// nothing about the schema.
//
// The exit code is 0 if all is well, 1 if what was asked was refused or
// problems were found, and 2 if the command was used wrongly or cannot run.
// What went wrong is told on standard error in plain words.
//
// Start reading at main.go; then there is one file per subcommand.
package main
