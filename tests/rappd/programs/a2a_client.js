// One message sent twice, one streamed, and its task found again, with the unmodified client of @a2a-js/sdk.
// URL, BINDING, TEXT and ID come from the environment.
import {
  ClientFactory,
  ClientFactoryOptions,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";

const { URL: url, BINDING: binding, TEXT: text, ID: id } = process.env;
const transports = { JSONRPC: [new JsonRpcTransportFactory()], "HTTP+JSON": [new RestTransportFactory()] };
const asked = (messageId) => ({
  message: { messageId, role: 1, parts: [{ content: { $case: "text", value: text } }] },
});

const factory = new ClientFactory({ ...ClientFactoryOptions.default, transports: transports[binding] });
const client = await factory.createFromUrl(url);
const sent = await client.sendMessage(asked(id));
const again = await client.sendMessage(asked(id));
const streamed = [];
for await (const event of client.sendMessageStream(asked(`${id} streamed`))) streamed.push(event.payload);
const found = await client.getTask({ id: sent.id });
console.log(JSON.stringify({ sent, again, streamed, found }));
