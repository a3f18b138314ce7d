-- Room for the second entry of each payment and of its step, in the indexes whose
-- keys come in order. A payment's last move makes one in every index, and so does
-- a step that changes its lane. Pages that are full by then are searched for
-- entries that can go, and split, one row after the other: a third of what such
-- a move took. Of what is there already nothing moves.
ALTER INDEX payments_client_id_id_key SET (fillfactor = 50);
ALTER INDEX payments_reference SET (fillfactor = 50);
ALTER INDEX steps_5_pkey SET (fillfactor = 50);
