// One message sent twice, one streamed, and its task found again, with the unmodified client of @a2a-js/sdk.
// node a2a_client.cjs URL BINDING TEXT ID
const { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } = require("@a2a-js/sdk/client");

const [url, binding, text, id] = process.argv.slice(2);
const transports = { JSONRPC: [new JsonRpcTransportFactory()], "HTTP+JSON": [new RestTransportFactory()] };
const asked = (messageId) => ({
  message: { messageId, role: 1, parts: [{ content: { $case: "text", value: text } }] },
});

async function main() {
  const factory = new ClientFactory({ ...ClientFactoryOptions.default, transports: transports[binding] });
  const client = await factory.createFromUrl(url);
  const sent = await client.sendMessage(asked(id));
  const again = await client.sendMessage(asked(id));
  const streamed = [];
  for await (const event of client.sendMessageStream(asked(`${id} streamed`))) streamed.push(event.payload);
  const found = await client.getTask({ id: sent.id });
  console.log(JSON.stringify({ sent, again, streamed, found }));
}

main().catch((problem) => {
  console.error(problem);
  process.exit(1);
});
