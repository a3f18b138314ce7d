import type { Store } from "../store.js";
import { sqlStore, type SqlOptions } from "./sql.js";

/** What a client of Prisma is inside a transaction, as far as it is needed. */
export interface PrismaQueryable {
  $queryRawUnsafe(sql: string, ...values: any[]): Promise<any>;
  $executeRawUnsafe(sql: string, ...values: any[]): Promise<number>;
}

export interface PrismaClientLike extends PrismaQueryable {
  $transaction<A>(fn: (tx: any) => Promise<A>, options?: any): Promise<A>;
}

/** The three tables through Prisma. Your handle of a transaction is what `$transaction` gives. */
export function prismaStore(prisma: PrismaClientLike, dialect: SqlOptions<unknown>["dialect"] = "postgres"): Store<PrismaQueryable> {
  return sqlStore<PrismaQueryable>({
    dialect,
    async query(tx, sql, values) {
      const on = tx ?? prisma;
      // Times need eight bytes, which Prisma writes for a big integer only.
      const given = values.map((v) => (typeof v === "number" && v > 2 ** 31 - 1 ? BigInt(v) : v));
      if (/^\s*SELECT/i.test(sql)) return { rows: await on.$queryRawUnsafe(sql, ...given), changes: 0 };
      return { rows: [], changes: await on.$executeRawUnsafe(sql, ...given) };
    },
    transaction: (fn) => prisma.$transaction(fn),
  });
}
