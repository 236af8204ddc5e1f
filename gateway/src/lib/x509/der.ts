/** An encoded value of the Distinguished Encoding Rules (X.690). */
export type Der = Buffer

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
  generalizedTime: 0x18,
} as const

export function sequence(...items: readonly Der[]): Der {
  return tagged(tags.sequence, Buffer.concat(items))
}

/** A set of one element, which needs no sorting. */
export function setOf(item: Der): Der {
  return tagged(tags.set, item)
}

/** A non-negative integer, big-endian. */
export function integer(bytes: Uint8Array): Der {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const minimal = Buffer.from(bytes.subarray(start))
  const isNegative = ((minimal[0] ?? 0) & 0x80) !== 0
  return tagged(tags.integer, isNegative ? Buffer.concat([Buffer.of(0), minimal]) : minimal)
}

/** Only true is encoded: false is the default of all fields in use, and DER omits defaults. */
export function isTrue(): Der {
  return tagged(tags.boolean, Buffer.of(0xff))
}

/** A bit string; `unusedBits` of the last byte are not part of it. */
export function bitString(bytes: Uint8Array, unusedBits = 0): Der {
  return tagged(tags.bitString, Buffer.concat([Buffer.of(unusedBits), bytes]))
}

export function octetString(bytes: Uint8Array): Der {
  return tagged(tags.octetString, bytes)
}

/** The null value. */
export function none(): Der {
  return tagged(tags.null, Buffer.alloc(0))
}

export function utf8String(text: string): Der {
  return tagged(tags.utf8String, Buffer.from(text))
}

/** An object identifier in dotted notation. */
export function objectIdentifier(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes = [first * 40 + second, ...rest].flatMap(base128)
  return tagged(tags.objectIdentifier, Buffer.from(bytes))
}

/** A time as UTCTime before 2050 and GeneralizedTime from then on (RFC 5280, 4.1.2.5). */
export function time(ms: number): Der {
  const digits = new Date(ms).toISOString().replace(/\.\d+/, '').replace(/[-:T]/g, '')
  const isGeneralized = Number(digits.slice(0, 4)) >= 2050
  return isGeneralized
    ? tagged(tags.generalizedTime, Buffer.from(digits))
    : tagged(utcTime, Buffer.from(digits.slice(2)))
}

const utcTime = 0x17

/** A context-specific tag: `constructed` around other values, or primitive. */
export function context(tag: number, content: Uint8Array, form: 'constructed' | 'primitive'): Der {
  return tagged(0x80 | (form === 'constructed' ? 0x20 : 0) | tag, content)
}

function tagged(tag: number, content: Uint8Array): Der {
  return Buffer.concat([Buffer.of(tag), lengthOf(content.length), content])
}

function lengthOf(length: number): Der {
  if (length < 0x80) return Buffer.of(length)
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.of(0x80 | bytes.length, ...bytes)
}

function base128(value: number): number[] {
  const bytes = [value % 128]
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.unshift(0x80 | (rest % 128))
  }
  return bytes
}
