/** What a stick answers to, and whether it is connected. */
export interface AtModem {
  isConnected(): boolean;
  setConnected(connected: boolean): void;
}

const longestMessage = 1024;

/** The far end of AT commands that are embedded in a control interface: a few that data connections need (spec 3.6). */
export class AtChannel {
  readonly #modem: AtModem;
  readonly #messages: string[] = [];
  #line = '';

  constructor(modem: AtModem) {
    this.#modem = modem;
  }

  /** Takes what the host has sent; the number of messages that there are to fetch more than before. */
  add(data: Uint8Array): number {
    const before = this.#messages.length;
    for (const code of data) {
      const character = String.fromCharCode(code);
      if (character === '\r') {
        const line = this.#line.trim();
        this.#line = '';
        if (line !== '') this.#carryOut(line);
      } else if (this.#line.length < longestMessage) {
        this.#line += character;
      }
    }
    return this.#messages.length - before;
  }

  /** The next message for GET_ENCAPSULATED_RESPONSE; undefined: there is none. */
  take(maxBytes: number): Uint8Array | undefined {
    const message = this.#messages.shift();
    if (message === undefined) return undefined;
    if (message.length > maxBytes) this.#messages.unshift(message.slice(maxBytes));
    return Uint8Array.from(message.slice(0, maxBytes), (character) => character.charCodeAt(0));
  }

  clear(): void {
    this.#messages.length = 0;
    this.#line = '';
  }

  #say(...lines: readonly string[]): void {
    this.#messages.push(lines.map((line) => `\r\n${line}\r\n`).join(''));
  }

  #carryOut(line: string): void {
    const connection = /^AT\^NDISDUP=1,([01])\b/.exec(line);
    if (connection !== null) {
      const connected = connection[1] === '1';
      this.#say('OK');
      if (connected === this.#modem.isConnected()) return;
      this.#modem.setConnected(connected);
      this.#say(`^NDISSTAT:${connected ? 1 : 0},,,"IPV4"`);
    } else if (line === 'AT^NDISSTATQRY?') {
      this.#say(`^NDISSTATQRY: ${this.#modem.isConnected() ? 1 : 0},,,"IPV4"`, 'OK');
    } else if (line === 'AT' || line === 'ATE0') {
      this.#say('OK');
    } else if (line === 'AT+CGMI') {
      this.#say('Queuescope', 'OK');
    } else {
      this.#say('ERROR');
    }
  }
}
