-- rolling
-- What an instance alone knows to be wrong with it, as codes with commas between.
ALTER TABLE instances ADD COLUMN troubles TEXT NOT NULL DEFAULT '';
