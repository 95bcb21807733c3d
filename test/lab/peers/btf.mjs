// Reads BTF, the kernel's description of its own types (/sys/kernel/btf/*), as far as offsets in structs need it.

const magic = 0xeb9f;
const kinds = {
  pointer: 2,
  array: 3,
  struct: 4,
  union: 5,
  typedef: 8,
  volatile: 9,
  const: 10,
  restrict: 11,
  func: 12,
};
const funcProto = 13;
const typeTag = 18;
/** Bytes behind a type's three words: for each of its `vlen` elements, and once. */
const elementBytes = { 4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12 };
const extraBytes = { 1: 4, 3: 12, 14: 4, 17: 4 };

export class Btf {
  #types = [];
  #base;
  #firstId;
  #firstStringOffset;
  #strings;
  #data;

  /**
   * @param {Buffer} data
   * @param {Btf} [base] of the kernel, where `data` is a module's
   */
  constructor(data, base) {
    if (data.readUInt16LE(0) !== magic) throw new Error('this is no BTF');
    const headerBytes = data.readUInt32LE(4);
    const [typesAt, typesLength, stringsAt, stringsLength] = [8, 12, 16, 20].map((at) =>
      data.readUInt32LE(at),
    );
    this.#base = base;
    this.#firstId = base === undefined ? 1 : base.#nextId;
    this.#firstStringOffset = base === undefined ? 0 : base.#stringsEnd;
    this.#strings = data.subarray(headerBytes + stringsAt, headerBytes + stringsAt + stringsLength);
    this.#data = data;
    const end = headerBytes + typesAt + typesLength;
    for (let at = headerBytes + typesAt; at < end;) {
      this.#types.push(at);
      const info = data.readUInt32LE(at + 4);
      const kind = (info >>> 24) & 0x1f;
      at += 12 + (info & 0xffff) * (elementBytes[kind] ?? 0) + (extraBytes[kind] ?? 0);
    }
  }

  get #nextId() {
    return this.#firstId + this.#types.length;
  }
  get #stringsEnd() {
    return this.#firstStringOffset + this.#strings.length;
  }

  #string(offset) {
    if (offset < this.#firstStringOffset) return this.#base.#string(offset);
    const start = offset - this.#firstStringOffset;
    return this.#strings.toString('latin1', start, this.#strings.indexOf(0, start));
  }

  /** @returns the type of that number, read */
  type(id) {
    if (id < this.#firstId) return this.#base.type(id);
    const at = this.#types[id - this.#firstId];
    if (at === undefined) throw new Error(`BTF has no type ${id}`);
    const info = this.#data.readUInt32LE(at + 4);
    return {
      name: this.#string(this.#data.readUInt32LE(at)),
      kind: (info >>> 24) & 0x1f,
      count: info & 0xffff,
      hasBitfields: info >>> 31 === 1,
      /** Bytes of a struct; the number of the type that another one points to or renames. */
      sizeOrType: this.#data.readUInt32LE(at + 8),
      at: at + 12,
      data: this.#data,
      string: (offset) => this.#string(offset),
    };
  }

  /** The first type of that kind and name; looked for in a module's own types first. */
  find(kind, name) {
    for (let id = this.#firstId; id < this.#nextId; id++) {
      const type = this.type(id);
      if (type.kind === kind && type.name === name) return type;
    }
    if (this.#base !== undefined) return this.#base.find(kind, name);
    throw new Error(`BTF has no ${name}`);
  }

  /** What is left of a type without its names and qualifiers. */
  plain(id) {
    let type = this.type(id);
    while ([kinds.typedef, kinds.volatile, kinds.const, kinds.restrict, typeTag].includes(type.kind)) {
      type = this.type(type.sizeOrType);
    }
    return type;
  }

  /** Members of a struct or union: name, offset in bytes, type's number. */
  members(type) {
    return Array.from({ length: type.count }, (_, i) => {
      const at = type.at + 12 * i;
      const bits = type.data.readUInt32LE(at + 8);
      return {
        name: type.string(type.data.readUInt32LE(at)),
        typeId: type.data.readUInt32LE(at + 4),
        offset: (type.hasBitfields ? bits & 0xffffff : bits) / 8,
      };
    });
  }

  /** Where a member lies in a struct, those of unnamed members included. */
  offsetOf(type, name) {
    const found = this.#findMember(type, name);
    if (found === undefined) throw new Error(`struct ${type.name} has no member ${name}`);
    return found;
  }

  #findMember(type, name) {
    for (const member of this.members(type)) {
      if (member.name === name) return member.offset;
      if (member.name !== '') continue;
      const inner = this.plain(member.typeId);
      if (inner.kind !== kinds.struct && inner.kind !== kinds.union) continue;
      const offset = this.#findMember(inner, name);
      if (offset !== undefined) return member.offset + offset;
    }
    return undefined;
  }

  struct(name) {
    return this.find(kinds.struct, name);
  }

  /** The structs that a function's arguments point to, by position; undefined for an argument that is no such pointer. */
  argumentStructs(functionName) {
    const prototype = this.type(this.find(kinds.func, functionName).sizeOrType);
    if (prototype.kind !== funcProto) throw new Error(`${functionName} has no prototype`);
    return Array.from({ length: prototype.count }, (_, i) => {
      const pointer = this.plain(prototype.data.readUInt32LE(prototype.at + 8 * i + 4));
      if (pointer.kind !== kinds.pointer) return undefined;
      const target = this.plain(pointer.sizeOrType);
      return target.kind === kinds.struct ? target.name : undefined;
    });
  }
}
