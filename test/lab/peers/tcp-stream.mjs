// One end of a TCP connection over which both ends send random bytes at the same time and check each other's:
//   node tcp-stream.mjs listen PORT BYTES         serves one connection after another, until it is ended
//   node tcp-stream.mjs connect ADDRESS PORT BYTES
// Each end sends BYTES bytes and their SHA-256; { sent, received, good } is printed as JSON when all of the other's has come.
import { createHash, randomBytes } from 'node:crypto';
import { connect, createServer } from 'node:net';

const digestBytes = 32;
const chunkBytes = 64 * 1024;

async function send(socket, bytes) {
  const hash = createHash('sha256');
  for (let left = bytes; left > 0;) {
    const chunk = randomBytes(Math.min(left, chunkBytes));
    left -= chunk.length;
    hash.update(chunk);
    if (!socket.write(chunk)) await new Promise((resolve) => socket.once('drain', resolve));
  }
  socket.end(hash.digest());
}

function receive(socket, bytes) {
  return new Promise((resolve, reject) => {
    const hash = createHash('sha256');
    let received = 0;
    let digest = Buffer.alloc(0);
    socket.on('data', (data) => {
      const payload = data.subarray(0, Math.max(0, bytes - received));
      hash.update(payload);
      digest = Buffer.concat([digest, data.subarray(payload.length)]);
      received += payload.length;
    });
    socket.on('end', () =>
      resolve({
        received,
        good: received === bytes && digest.length === digestBytes && hash.digest().equals(digest),
      }),
    );
    socket.on('error', reject);
  });
}

async function exchange(socket, bytes) {
  const [result] = await Promise.all([receive(socket, bytes), send(socket, bytes)]);
  console.log(JSON.stringify({ sent: bytes, ...result }));
}

const [mode, ...words] = process.argv.slice(2);
if (mode === 'listen') {
  const [port, bytes] = words.map(Number);
  createServer({ allowHalfOpen: true }, (socket) => {
    exchange(socket, bytes).catch((error) => console.log(JSON.stringify({ error: error.message })));
  }).listen(port, () => console.log(JSON.stringify({ listening: port })));
} else {
  const [address, port, bytes] = words;
  await exchange(connect({ host: address, port: Number(port), allowHalfOpen: true }), Number(bytes));
}
