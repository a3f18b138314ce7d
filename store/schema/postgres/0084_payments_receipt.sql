-- rolling
-- payments_issued has taken its place. In a commit of its own: what had read payments and
-- waited for the new index to be built would have waited for this lock, and it for that.
DROP INDEX payments_receipt;
