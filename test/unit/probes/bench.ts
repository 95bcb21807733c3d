import { IpStack } from '../../../src/ip/ip-stack.ts';
import { arpFrame, echo, ip, ipFrame, LinkDouble, peerMac, readFrame } from '../ip/link-double.ts';

export const us = ip('10.9.0.2');
export const target = ip('10.9.0.1');

/** A host on a link, with the target's MAC address known. */
export class ProbeBench {
  nowUs = 0;
  readonly link = new LinkDouble();
  readonly stack = new IpStack(this.link);

  constructor(resolved = true) {
    this.stack.configure({ address: us, prefixLength: 24, gateway: undefined });
    if (!resolved) return;
    this.stack.resolve(target, 0);
    this.resolve();
    this.link.take();
  }

  resolve(): void {
    this.hear(arpFrame('reply', peerMac, target, us));
  }

  hear(frame: Uint8Array): void {
    this.stack.handleFrame(frame, 0, frame.length, this.nowUs);
  }

  /** The echo requests that were sent since the last time: sequence number and tag. */
  takeEchoes(): readonly { readonly sequence: number; readonly tag: number; readonly atUs: number }[] {
    return this.link.take().flatMap(({ bytes, tag, nowUs }) => {
      const { type, payload } = readFrame(bytes);
      if (type !== 0x0800 || payload[0] !== 8) return [];
      return [{ sequence: ((payload[6] ?? 0) << 8) | (payload[7] ?? 0), tag, atUs: nowUs }];
    });
  }

  answer(identifier: number, sequence: number): void {
    this.hear(ipFrame(1, target, us, echo('reply', identifier, sequence, new Uint8Array(56))));
  }
}
