import { encodeCdcFunctional, type CdcFunctional } from '../wire/cdc-functional.ts';

/** Kinds of functional descriptors that lsusb prints field by field, without the bytes that say which it is. */
type Kind = 'header' | 'capabilities' | 'union' | 'ethernet' | 'mdlmDetail' | 'ncm' | 'mbim' | 'mbimExtended';

/** The field with which each kind begins. */
const openers: ReadonlyMap<string, Kind> = new Map([
  ['bcdcdc', 'header'],
  ['bmcapabilities', 'capabilities'],
  ['bmasterinterface', 'union'],
  ['imacaddress', 'ethernet'],
  ['bguiddescriptortype', 'mdlmDetail'],
  ['bcdncmversion', 'ncm'],
  ['bcdmbimversion', 'mbim'],
  ['bcdmbimextendedversion', 'mbimExtended'],
]);

const members: ReadonlySet<string> = new Set([
  'bdatainterface',
  'bslaveinterface',
  'bmethernetstatistics',
  'wmaxsegmentsize',
  'wnumbermcfilters',
  'bnumberpowerfilters',
  'bguid',
  'bmnetworkcapabilities',
  'wmaxcontrolmessage',
  'bnumberfilters',
  'bmaxfiltersize',
  'bmaxoutstandingcommandmessages',
  'wmtu',
]);

/** Fields with a binary coded decimal. */
export const functionalBcdFields: ReadonlySet<string> = new Set([
  'bcdcdc',
  'bcdncmversion',
  'bcdmbimversion',
  'bcdmbimextendedversion',
]);

export function isFunctionalOpener(name: string): boolean {
  return openers.has(name);
}

export function isFunctionalMember(name: string): boolean {
  return members.has(name);
}

/** A functional descriptor that is being put together from its printed fields. Names are in lower case. */
export class FunctionalDraft {
  readonly line: number;
  readonly #kind: Kind;
  readonly #fields = new Map<string, number>();
  readonly #slaves: number[] = [];
  #guid: Uint8Array | undefined;

  constructor(opener: string, value: number, line: number) {
    this.line = line;
    this.#kind = openers.get(opener) ?? 'header';
    this.#fields.set(opener, value);
  }

  add(name: string, value: number): void {
    if (name === 'bslaveinterface') this.#slaves.push(value);
    else if (!this.#fields.has(name)) this.#fields.set(name, value);
  }

  /** The GUID of an MDLM descriptor, which begins like a header. */
  addGuid(guid: Uint8Array): void {
    this.#guid = guid;
  }

  /** The descriptor as a device would send it; fields that were not printed are 0. */
  encode(): Uint8Array {
    const of = (name: string): number => this.#fields.get(name) ?? 0;
    const functional = ((): Omit<CdcFunctional, 'duplicates' | 'malformed'> => {
      switch (this.#kind) {
        case 'header':
          return this.#guid === undefined
            ? { header: { version: of('bcdcdc') } }
            : { mdlm: { version: of('bcdcdc'), guid: this.#guid } };
        case 'capabilities':
          return this.#fields.has('bdatainterface')
            ? {
                callManagement: {
                  capabilities: of('bmcapabilities'),
                  dataInterface: of('bdatainterface'),
                },
              }
            : { acm: { capabilities: of('bmcapabilities') } };
        case 'union':
          return { union: { controlInterface: of('bmasterinterface'), dataInterfaces: this.#slaves } };
        case 'ethernet':
          return {
            ethernet: {
              macAddressIndex: of('imacaddress'),
              statistics: of('bmethernetstatistics'),
              maxSegmentSize: of('wmaxsegmentsize'),
              multicastFilters: of('wnumbermcfilters'),
              powerFilters: of('bnumberpowerfilters'),
            },
          };
        case 'mdlmDetail':
          return {
            mdlmDetail: {
              guidDescriptorType: of('bguiddescriptortype'),
              detail: new Uint8Array(0),
            },
          };
        case 'ncm':
          return { ncm: { version: of('bcdncmversion'), capabilities: of('bmnetworkcapabilities') } };
        case 'mbim':
          return {
            mbim: {
              version: of('bcdmbimversion'),
              maxControlMessage: of('wmaxcontrolmessage'),
              filterCount: of('bnumberfilters'),
              maxFilterSize: of('bmaxfiltersize'),
              maxSegmentSize: of('wmaxsegmentsize'),
              capabilities: of('bmnetworkcapabilities'),
            },
          };
        case 'mbimExtended':
          return {
            mbimExtended: {
              version: of('bcdmbimextendedversion'),
              maxOutstandingCommands: of('bmaxoutstandingcommandmessages'),
              mtu: of('wmtu'),
            },
          };
      }
    })();
    return encodeCdcFunctional(functional);
  }
}
