package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"till/internal/db"
)

// row is the current row of an answer, without its first columns.
type row struct {
	pgx.Rows
	skip int
}

// Scan implements db.Row.
func (r *row) Scan(dest ...any) error {
	all := make([]any, r.skip, r.skip+len(dest))
	raw, fields := r.RawValues(), r.FieldDescriptions()
	for _, d := range dest {
		if s, ok := d.(db.ColumnScanner); ok && len(all) < len(raw) {
			c, err := column(raw[len(all)], &fields[len(all)])
			if err != nil {
				return err
			}
			s.ScanColumn(c)
			d = nil // pgx passes over it
		}
		all = append(all, d)
	}
	return r.Rows.Scan(all...)
}

func firstColumn(rows pgx.Rows) (db.Column, error) {
	return column(rows.RawValues()[0], &rows.FieldDescriptions()[0])
}

// column returns a value in the server's binary form.
func column(b []byte, f *pgconn.FieldDescription) (db.Column, error) {
	if b == nil {
		return db.Column{Null: true}, nil
	}
	if f.DataTypeOID == pgtype.TextOID || f.DataTypeOID == pgtype.VarcharOID { // the same in both forms
		return db.Column{Bytes: b}, nil
	}
	if f.Format != pgtype.BinaryFormatCode {
		return db.Column{}, fmt.Errorf("column %s is not in binary form", f.Name)
	}
	switch f.DataTypeOID {
	case pgtype.Int8OID:
		return db.Column{Int: int64(binary.BigEndian.Uint64(b))}, nil
	case pgtype.Int4OID:
		return db.Column{Int: int64(int32(binary.BigEndian.Uint32(b)))}, nil
	case pgtype.Int2OID:
		return db.Column{Int: int64(int16(binary.BigEndian.Uint16(b)))}, nil
	case pgtype.BoolOID:
		return db.Column{Int: int64(b[0])}, nil
	case pgtype.ByteaOID:
		return db.Column{Bytes: b}, nil
	}
	return db.Column{}, fmt.Errorf("column %s has the type %d", f.Name, f.DataTypeOID)
}
