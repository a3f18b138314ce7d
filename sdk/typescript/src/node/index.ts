export { FileStore, fileStore, FileTx } from "./file.js";
export { nodeWebhook, type NodeRequest, type NodeResponse } from "./http.js";
export { fastifyWebhook, type FastifyLike } from "./fastify.js";
