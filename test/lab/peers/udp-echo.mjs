// Exchanges UDP datagrams with an echo service, paced, and checks every byte that comes back:
//   node udp-echo.mjs ADDRESS PORT SECONDS DATAGRAMS_PER_SECOND PAYLOAD_BYTES
// Prints { sent, received, wrong } as JSON once all is back, or ten seconds after the last was sent.
import { createSocket } from 'node:dgram';
import { setTimeout as wait } from 'node:timers/promises';

const [address, port, seconds, rate, length] = process.argv
  .slice(2)
  .map((word, i) => (i === 0 ? word : Number(word)));
const counts = { sent: 0, received: 0, wrong: 0 };

function payload(number) {
  const bytes = Buffer.alloc(length, number & 0xff);
  bytes.writeUInt32BE(number, 0);
  return bytes;
}

const socket = createSocket('udp4');
socket.on('message', (message) => {
  const number = message.length >= 4 ? message.readUInt32BE(0) : -1;
  if (number >= 0 && number < counts.sent && message.equals(payload(number))) counts.received++;
  else counts.wrong++;
});
const beganMs = performance.now();
while (performance.now() - beganMs < seconds * 1000) {
  const due = ((performance.now() - beganMs) / 1000) * rate;
  while (counts.sent < due) {
    const bytes = payload(counts.sent);
    counts.sent++;
    await new Promise((resolve) => socket.send(bytes, port, address, resolve));
  }
  await wait(10);
}
for (let i = 0; i < 100 && counts.received < counts.sent; i++) await wait(100);
console.log(JSON.stringify(counts));
socket.close();
