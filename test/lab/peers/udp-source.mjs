// Sends UDP datagrams of 1,000 bytes at a modest pace: node udp-source.mjs ADDRESS PORT COUNT
import { createSocket } from 'node:dgram';
import { setTimeout } from 'node:timers/promises';

const [address, port, count] = process.argv.slice(2);
const socket = createSocket('udp4');
const datagram = Buffer.alloc(1000);
for (let sent = 0; sent < Number(count); sent++) {
  await new Promise((resolve) => socket.send(datagram, Number(port), address, resolve));
  if (sent % 10 === 9) await setTimeout(5);
}
socket.close();
