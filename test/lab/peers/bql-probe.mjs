// Prints the kernel probes (lines for /sys/kernel/tracing/kprobe_events) that show the state of Byte Queue Limits of a
// driver's first transmit queue, for whatever kernel this is: where things lie in its structs stands in its own description of
// its types (BTF).
//   node bql-probe.mjs DRIVER...     (their modules are loaded; prints one line with the probes' names first)
// dql_completed itself cannot be probed in kernels that keep lib/ out of tracing, so a probe stands at the return of the
// driver's function that calls it: its argument leads to the network device.
// Probes: bql_open, when the interface was opened; bql_sent, when a packet was handed to the driver; bql_done..., when the driver
// has dealt with what was sent.
import { readFileSync } from 'node:fs';
import { Btf } from './btf.mjs';

/** A driver's functions that report completions, with the member of `struct usbnet` that usbnet's are called with. */
const usbnet = { module: 'usbnet', functions: { usbnet_bh: 'delay', usbnet_bh_work: 'bh_work' } };
const places = {
  cdc_ether: usbnet,
  cdc_ncm: usbnet,
  cdc_eem: usbnet,
  rndis_host: usbnet,
  virtio_net: { module: 'virtio_net', functions: { free_old_xmit: undefined } },
  e1000e: { module: 'e1000e', functions: { e1000_clean_tx_irq: undefined } },
};

/** Name in the trace, member of struct dql, type. */
const members = [
  ['nq', 'num_queued', 'u32'],
  ['last', 'last_obj_cnt', 'u32'],
  ['adj', 'adj_limit', 'u32'],
  ['limit', 'limit', 'u32'],
  ['nc', 'num_completed', 'u32'],
  ['pov', 'prev_ovlimit', 'u32'],
  ['pnq', 'prev_num_queued', 'u32'],
  ['plo', 'prev_last_obj_cnt', 'u32'],
  ['ls', 'lowest_slack', 'u32'],
  ['sst', 'slack_start_time', 'u64'],
  ['max', 'max_limit', 'u32'],
  ['min', 'min_limit', 'u32'],
  ['hold', 'slack_hold_time', 'u32'],
  ['thrs', 'stall_thrs', 'u16'],
  ['smax', 'stall_max', 'u16'],
  ['scnt', 'stall_cnt', 'u64'],
];

const btf = new Btf(readFileSync('/sys/kernel/btf/vmlinux'));
const dql = btf.struct('dql');
const netdevQueue = btf.struct('netdev_queue');
const netDevice = btf.struct('net_device');
const read = (offset, from) => `${offset < 0 ? offset : `+${offset}`}(${from})`;

/** All of it, of the netdev_queue that `queue` is an expression for. */
function fields(queue) {
  const base = btf.offsetOf(netdevQueue, 'dql');
  const device = read(btf.offsetOf(netdevQueue, 'dev'), queue);
  return [
    `dev=${read(btf.offsetOf(netDevice, 'name'), device)}:string`,
    ...members.map(
      ([key, member, type]) => `${key}=${read(base + btf.offsetOf(dql, member), queue)}:${type}`,
    ),
    'jif=@jiffies_64:u64',
  ].join(' ');
}

const firstQueue = (device) => read(btf.offsetOf(netDevice, '_tx'), device);

/** The queue, from what the function was called with. */
function queueOf(moduleBtf, name, container) {
  const structs = moduleBtf.argumentStructs(name);
  for (const [i, struct] of structs.entries()) {
    const argument = `$arg${i + 1}`;
    if (struct === 'netdev_queue') return argument;
    if (struct === 'e1000_ring') {
      const adapter = read(moduleBtf.offsetOf(moduleBtf.struct(struct), 'adapter'), argument);
      return firstQueue(read(moduleBtf.offsetOf(moduleBtf.struct('e1000_adapter'), 'netdev'), adapter));
    }
  }
  const usbnetStruct = moduleBtf.struct('usbnet');
  const offset = moduleBtf.offsetOf(usbnetStruct, 'net') - moduleBtf.offsetOf(usbnetStruct, container);
  return firstQueue(read(offset, '$arg1'));
}

const symbols = readFileSync('/proc/kallsyms', 'latin1');
const lines = [
  ['bql_open', `__dev_open ${fields(firstQueue('$arg1'))}`],
  ['bql_sent', `dev_hard_start_xmit ${fields('$arg3')}`],
];
const modules = new Set(process.argv.slice(2).map((driver) => places[driver]));
if (modules.has(undefined)) throw new Error(`known drivers: ${Object.keys(places).join(', ')}`);
for (const { module, functions } of modules) {
  const moduleBtf = new Btf(readFileSync(`/sys/kernel/btf/${module}`), btf);
  for (const [name, container] of Object.entries(functions)) {
    // Another kernel may have built it into its caller.
    if (!symbols.includes(` ${name}\t[${module}]`)) continue;
    lines.push([`bql_done_${name}`, `${module}:${name} ${fields(queueOf(moduleBtf, name, container))}`]);
  }
}
console.log(lines.map(([name]) => name).join(' '));
for (const [name, probe] of lines) console.log(`r:${name} ${probe}`);
