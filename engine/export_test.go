package engine

// Commits is which answers are recorded in one commit each.
var Commits = commits

// Once makes an answer one that saw nothing but the first send on record.
func Once(a *Answer) *Answer {
	a.onlyFirstSend = true
	return a
}

// Keep makes an answer one to a job that kept its row.
func Keep(a *Answer, row any) *Answer {
	a.cachedRow = row
	return Once(a)
}
