import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { closePayload, encodeFrame, opcodes } from './frame.ts'
import { createMessageReader, type Received } from './message-reader.ts'

const maxMessageBytes = 70_000

function readAll(chunks: readonly Buffer[], isMasked = true): Received[] {
  const reader = createMessageReader({ isMasked, maxMessageBytes })
  return chunks.flatMap((chunk) => [...reader.read(chunk)])
}

/** The bytes cut at positions, each given as a share of the length. */
function cut(bytes: Buffer, shares: readonly number[]): Buffer[] {
  const places = [...shares.map((share) => Math.floor(share * bytes.length)), 0, bytes.length]
  const sorted = places.toSorted((one, other) => one - other)
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end))
}

/** A frame that is not the last of its message. */
function fragment(opcode: number, payload: Buffer): Buffer {
  const frame = encodeFrame(opcode, payload, true)
  frame[0] = (frame[0] ?? 0) & 0x7f
  return frame
}

const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })
const sizes = fc.oneof(
  fc.integer({ min: 0, max: 200 }),
  fc.constantFrom(125, 126, 127, 65_535, 65_536, maxMessageBytes),
)

describe('the reader of messages', () => {
  it('reads equal messages for every split of the bytes', () => {
    fc.assert(
      fc.property(
        fc.array(sizes, { minLength: 1, maxLength: 4 }),
        shares,
        fc.boolean(),
        (lengths, at, isMasked) => {
          const payloads = lengths.map((length, index) => Buffer.alloc(length, 97 + index))
          const bytes = Buffer.concat(payloads.map((payload) => encodeFrame(opcodes.text, payload, isMasked)))
          const read = readAll(cut(bytes, at), isMasked)
          expect(read.map((each) => (each.kind === 'message' ? each.bytes.toString() : each.kind))).toEqual(
            payloads.map(String),
          )
        },
      ),
      { numRuns: 150 },
    )
  })

  it('joins fragments, with control frames between them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 6 }),
        shares,
        (parts, at) => {
          const frames = parts.flatMap((part, index) => [
            fragment(index === 0 ? opcodes.binary : opcodes.continuation, Buffer.from(part)),
            encodeFrame(opcodes.ping, Buffer.from('?'), true),
          ])
          const last = encodeFrame(opcodes.continuation, Buffer.from('!'), true)
          const read = readAll(cut(Buffer.concat([...frames, last]), at))
          expect(read.filter(({ kind }) => kind === 'ping')).toHaveLength(parts.length)
          expect(read.at(-1)).toEqual({
            kind: 'message',
            isText: false,
            bytes: Buffer.concat([...parts, Buffer.from('!')]),
          })
        },
      ),
      { numRuns: 100 },
    )
  })

  it('neither throws nor exceeds its limit for arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), shares, fc.boolean(), (bytes, at, isMasked) => {
        for (const received of readAll(cut(Buffer.from(bytes), at), isMasked))
          if (received.kind === 'message') expect(received.bytes.length).toBeLessThanOrEqual(maxMessageBytes)
      }),
      { numRuns: 500 },
    )
  })

  const masked = (first: number, second: number, rest: number[] = []) => Buffer.from([first, second, ...rest])

  it.each<[string, number, Buffer]>([
    ['reserved bits', 1002, masked(0xc1, 0x80, [0, 0, 0, 0])],
    ['a reserved data opcode', 1002, masked(0x83, 0x80, [0, 0, 0, 0])],
    ['a reserved control opcode', 1002, masked(0x8b, 0x80, [0, 0, 0, 0])],
    ['no mask', 1002, masked(0x81, 0x01, [97])],
    ['a fragmented ping', 1002, masked(0x09, 0x80, [0, 0, 0, 0])],
    ['a long ping', 1002, encodeFrame(opcodes.ping, Buffer.alloc(126), true)],
    ['a continuation first', 1002, encodeFrame(opcodes.continuation, Buffer.from('a'), true)],
    [
      'a message in a message',
      1002,
      Buffer.concat([
        fragment(opcodes.text, Buffer.from('a')),
        encodeFrame(opcodes.text, Buffer.from('b'), true),
      ]),
    ],
    ['a length of 16 bits that fits in 7', 1002, masked(0x81, 0xfe, [0, 125, 0, 0, 0, 0])],
    [
      'a length of 64 bits that fits in 16',
      1002,
      masked(0x81, 0xff, [0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0]),
    ],
    ['a huge length', 1009, masked(0x81, 0xff, [255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0])],
    [
      'a message above the limit',
      1009,
      encodeFrame(opcodes.text, Buffer.alloc(maxMessageBytes + 1, 97), true),
    ],
    [
      'fragments above the limit',
      1009,
      Buffer.concat([
        fragment(opcodes.text, Buffer.alloc(40_000, 97)),
        encodeFrame(opcodes.continuation, Buffer.alloc(40_000, 97), true),
      ]),
    ],
    ['invalid UTF-8', 1007, encodeFrame(opcodes.text, Buffer.from([0xc3, 0x28]), true)],
    ['a close frame of one byte', 1002, encodeFrame(opcodes.close, Buffer.from([3]), true)],
    ['a close code that is never sent', 1002, encodeFrame(opcodes.close, closePayload(1006, ''), true)],
    ['a reason that is not UTF-8', 1007, encodeFrame(opcodes.close, Buffer.from([3, 232, 0xff]), true)],
  ])('reports %s with %i, and reads nothing more', (_, code, bytes) => {
    const read = readAll([bytes, encodeFrame(opcodes.text, Buffer.from('later'), true)])
    expect(read).toMatchObject([{ kind: 'violation', code }])
  })

  it('refuses masked frames of a server', () => {
    expect(readAll([encodeFrame(opcodes.text, Buffer.from('a'), true)], false)).toMatchObject([
      { kind: 'violation', code: 1002 },
    ])
  })

  it('reads the code and the reason of a close frame, and reads nothing more', () => {
    const bytes = Buffer.concat([
      encodeFrame(opcodes.close, closePayload(4001, 'bye'), true),
      encodeFrame(opcodes.text, Buffer.from('later'), true),
    ])
    expect(readAll([bytes])).toEqual([{ kind: 'close', code: 4001, reason: 'bye' }])
    expect(readAll([encodeFrame(opcodes.close, Buffer.alloc(0), true)])).toEqual([
      { kind: 'close', code: undefined, reason: '' },
    ])
  })

  it('cuts a long reason off between characters', () => {
    const payload = closePayload(1008, 'é'.repeat(100))
    expect(payload.length).toBeLessThanOrEqual(125)
    expect(payload.subarray(2).toString()).toBe('é'.repeat(61))
  })
})
