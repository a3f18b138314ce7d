export { sqlStore, type Result, type SqlOptions } from "./sql.js";
export { pgStore, type PgClient, type PgPool, type PgQueryable } from "./pg.js";
export { mysqlStore, type MysqlConnection, type MysqlPool, type MysqlQueryable } from "./mysql.js";
export { sqliteStore, type SqliteDatabase, type SqliteStore } from "./sqlite.js";
export { prismaStore, type PrismaClientLike, type PrismaQueryable } from "./prisma.js";
