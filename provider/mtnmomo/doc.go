// Package mtnmomo speaks to MTN MoMo: collections and disbursements.
package mtnmomo
