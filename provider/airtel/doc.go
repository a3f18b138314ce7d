// Package airtel speaks to Airtel Money: collections and disbursements.
package airtel
