// Reads cases as lines of JSON and tells, a line for each, what the official
// library says to it: whether it accepts the delivery, and how it would sign.
const { Webhook } = require("standardwebhooks");

const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { secret, headers, body } = JSON.parse(line);
  const webhook = new Webhook(secret);
  let accepted = true;
  try {
    webhook.verify(body, headers);
  } catch {
    accepted = false;
  }
  const at = new Date(Number(headers["webhook-timestamp"]) * 1000);
  console.log(JSON.stringify({ accepted, signature: webhook.sign(headers["webhook-id"], at, body) }));
});
