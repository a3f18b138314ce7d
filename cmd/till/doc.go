// Command till collects money from mobile money wallets: 'till dev' tries it on
// this machine, 'till serve' runs it, and the other commands are for the people
// who operate it.
//
// Each command takes --json. Each flag can be set by an environment variable
// (--base-url is TILL_BASE_URL); a flag on the command line wins. All commands
// except dev, serve and migrate may run beside a server and do not change the
// schema.
//
// The exit code is 0 if all is well, 1 if a request was rejected or problems
// were found, and 2 if the command was used wrongly or could not run. Errors are
// printed on standard error.
//
// Start reading at main.go; then there is one file per command;
// internal/money has those about payments and the books.
package main
