package store

// SearchBefore returns the beginning of a statement about a log of the client $1: of its
// table search, max(low) is the sequence of the last row from before the time $2, 0 if there
// is none. Times grow with the sequence, so the log is halved until the row is found, and
// needs no index by time, which every commit would pay for: about twenty reads by key in a log of a
// million rows, in one round trip. A row that is not there counts
// as one from before.
func SearchBefore(log, time, last string) string {
	const middle = `(low + high + 1) / 2`
	before := `coalesce((SELECT m.` + time + ` FROM ` + log + ` m WHERE m.client_id = $1 AND m.sequence = ` + middle + `), 0) < $2`
	return `WITH RECURSIVE search (low, high) AS (SELECT CAST(0 AS BIGINT), (SELECT ` + last + ` FROM client_heads WHERE client_id = $1)
		UNION ALL SELECT CASE WHEN ` + before + ` THEN ` + middle + ` ELSE low END, CASE WHEN ` + before + ` THEN high ELSE ` + middle + ` - 1 END
		FROM search WHERE low < high)`
}
