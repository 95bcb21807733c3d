// The far end of a UDP load: reads every datagram and keeps a count of datagrams and bytes.
//   node udp-sink.mjs PORT FILE
// FILE is a JSON document, rewritten twice a second: { datagrams, bytes, firstMs, lastMs }. It exists once the socket is
// bound. Datagrams that the socket had no room for are not in it: /proc/net/snmp counts those.
import { createSocket } from 'node:dgram';
import { renameSync, writeFileSync } from 'node:fs';

const [port, file] = process.argv.slice(2);
const count = { datagrams: 0, bytes: 0, firstMs: 0, lastMs: 0 };

function save() {
  writeFileSync(`${file}.new`, `${JSON.stringify(count)}\n`);
  renameSync(`${file}.new`, file);
}

const socket = createSocket('udp4');
socket.on('message', (message) => {
  count.lastMs = Date.now();
  if (count.datagrams === 0) count.firstMs = count.lastMs;
  count.datagrams++;
  count.bytes += message.length;
});
socket.bind(Number(port), () => {
  socket.setRecvBufferSize(212_992);
  save();
  setInterval(save, 500);
});
process.on('SIGTERM', () => {
  save();
  process.exit(0);
});
