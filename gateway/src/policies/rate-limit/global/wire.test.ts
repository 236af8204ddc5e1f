import { BinaryWriter } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeResponse, encodeRequest } from './wire.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const descriptor = { entries: [['k', 'v']], limit: undefined } as const

describe('a request', () => {
  it('encodes domain, descriptors and both counts by field number', () => {
    const bytes = encodeRequest('d', [{ descriptor, hits: 5 }], 7)
    expect(hex(bytes)).toBe('0a0164' + '120c' + '0a060a016b120176' + '1a020805' + '1807')
  })

  it('encodes 0 for a descriptor and omits 0 at the top', () => {
    expect(hex(encodeRequest('d', [{ descriptor, hits: 0 }], 0))).toBe(
      '0a0164' + '120a' + '0a060a016b120176' + '1a00',
    )
  })

  it('encodes a limit override', () => {
    const limited = { ...descriptor, limit: { requestsPerUnit: 300, unit: 'hour' } } as const
    expect(hex(encodeRequest('', [{ descriptor: limited, hits: 1 }], 0))).toBe(
      '1213' + '0a060a016b120176' + '120508ac021003' + '1a020801',
    )
  })

  it('counts beyond 32 bits at the top as the most that fits', () => {
    expect(hex(encodeRequest('', [], 2 ** 40))).toBe('18ffffffff0f')
  })
})

describe('an answer', () => {
  it('is decoded by field and skips unknown fields', () => {
    const writer = new BinaryWriter()
    writer.uint32(8).int32(2)
    writer.uint32(18).fork().uint32(8).int32(2)
    writer.uint32(18).fork().uint32(8).uint32(10).uint32(16).int32(2).uint32(26).string('name').join()
    writer.uint32(24).uint32(4).uint32(34).fork().uint32(8).int64(29).uint32(16).int32(1).join().join()
    writer.uint32(26).fork().uint32(10).string('X-A').uint32(18).string('1').join()
    writer.uint32(34).fork().uint32(10).string('x-b').uint32(26).bytes(Buffer.from('raw')).join()
    writer.uint32(42).bytes(Buffer.from('slow down'))
    writer.uint32(50).fork().uint32(8).int32(1).join()
    const answer = decodeResponse(writer.finish())
    expect(answer).toEqual({
      code: 'overLimit',
      statuses: [
        {
          code: 'overLimit',
          limit: { requestsPerUnit: 10, unit: 'minute' },
          remaining: 4,
          resetSeconds: 30,
        },
      ],
      responseHeaders: [{ name: 'X-A', value: '1' }],
      requestHeaders: [{ name: 'x-b', value: 'raw' }],
      body: Uint8Array.from(Buffer.from('slow down')),
    })
  })

  it('that is empty is not OK', () => {
    expect(decodeResponse(new Uint8Array()).code).toBe('unknown')
  })

  it('of an unknown code is not OK', () => {
    expect(decodeResponse(Uint8Array.of(8, 9)).code).toBe('unknown')
  })

  it.each([
    ['cut off', [0x12, 0x7f]],
    ['of another type than it should be', [0x0a, 0x01, 0x41]],
  ])('%s is refused', (_, bytes) => {
    expect(() => decodeResponse(Uint8Array.from(bytes))).toThrow()
  })

  it('of any bytes is read or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          const { code, statuses } = decodeResponse(bytes)
          expect(['unknown', 'ok', 'overLimit']).toContain(code)
          for (const { remaining } of statuses) expect(remaining).toBeGreaterThanOrEqual(0)
        } catch (error) {
          expect(error).toBeInstanceOf(Error)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
