import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encoded, headers, readMessage as read } from '../../../../test/support/ext-proc-server.ts'
import { createMessageWriter } from '../../../lib/protobuf/message-writer.ts'
import { decodeMessage } from './decode.ts'
import { createEncoder } from './encode.ts'
import { readStruct, writeStruct } from './struct.ts'

const decoded = (json: Parameters<typeof encoded>[0]) => decodeMessage(encoded(json))
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

describe('messages to the processor', () => {
  const encoder = createEncoder()
  const none = new Uint8Array(0)

  it('have headers with all of their bytes, and pseudo-headers in both fields', () => {
    const head = {
      pseudo: [[':path', '/a']] as const,
      headers: { 'x-a': 'caf\xe9', 'set-cookie': ['a', 'b'] },
      isComplete: true,
    }
    const raw = (value: string) => Buffer.from(value, 'latin1').toString('base64')
    expect(read(encoder.headers('request', head, none))).toEqual({
      requestHeaders: {
        headers: {
          headers: [
            { key: ':path', value: '/a', rawValue: raw('/a') },
            { key: 'x-a', rawValue: raw('caf\xe9') },
            { key: 'set-cookie', rawValue: raw('a') },
            { key: 'set-cookie', rawValue: raw('b') },
          ],
        },
        endOfStream: true,
      },
    })
  })

  it('have bodies, trailers and values', () => {
    const context = encoder.context({
      metadata: [['m', { a: [1, null, { b: '' }], c: false }]],
      attributes: [['n', { d: -1.5 }]],
      modes: { requestBody: 'buffered', responseBody: 'fullDuplexStreamed' },
    })
    expect(read(encoder.body('response', { bytes: Buffer.from('x'), isLast: true }, context))).toEqual({
      responseBody: { body: 'eA==', endOfStream: true },
      metadataContext: { filterMetadata: { m: { a: [1, null, { b: '' }], c: false } } },
      attributes: { n: { d: -1.5 } },
      protocolConfig: { requestBodyMode: 'BUFFERED', responseBodyMode: 'FULL_DUPLEX_STREAMED' },
    })
    expect(read(encoder.trailers('request', { 'x-sum': '1' }, none))).toEqual({
      requestTrailers: { trailers: { headers: [{ key: 'x-sum', rawValue: 'MQ==' }] } },
    })
  })
})

describe('messages of the processor', () => {
  it('have mutations of headers with their actions', () => {
    const set = [
      { header: { key: 'a', value: '1' } },
      { header: { key: 'b', value: '1', rawValue: 'Mg==' }, append: { value: true } },
      { header: { key: 'c', value: '1' }, append: { value: true }, appendAction: 1 },
      { header: { key: 'd', value: '1' }, appendAction: 3 },
    ]
    const { response } = decoded({
      requestHeaders: { response: { status: 1, headerMutation: { setHeaders: set, removeHeaders: ['x'] } } },
    })
    expect(response).toMatchObject({
      kind: 'step',
      direction: 'request',
      phase: 'headers',
      replacesMessage: true,
      headers: {
        remove: ['x'],
        set: [
          { name: 'a', value: '1', action: 'overwrite' },
          { name: 'b', value: '2', action: 'append' },
          { name: 'c', value: '1', action: 'addIfAbsent' },
          { name: 'd', value: '1', action: 'overwriteIfExists' },
        ],
      },
    })
  })

  it('have bodies, modes and metadata', () => {
    const streamed = { bodyMutation: { streamedResponse: { body: 'eA==', endOfStream: true } } }
    const found = decoded({
      responseBody: { response: streamed },
      modeOverride: { responseBodyMode: 'BUFFERED', requestTrailerMode: 2 },
      dynamicMetadata: { a: { b: [true, null, 1.5] }, __proto__x: 1 },
    })
    expect(found.response).toMatchObject({
      direction: 'response',
      phase: 'body',
      body: { kind: 'streamed', isLast: true },
    })
    expect(found.modeOverride).toMatchObject({ responseBody: 2, requestTrailers: 2, requestBody: 0 })
    expect(found.metadata).toEqual({ a: { b: [true, null, 1.5] }, __proto__x: 1 })
  })

  it('have immediate responses', () => {
    const { response } = decoded({
      immediateResponse: {
        status: { code: 403 },
        body: 'no',
        headers: headers({ a: 'b' }),
        grpcStatus: { status: 7 },
      },
    })
    expect(response).toMatchObject({ kind: 'immediate', status: 403, grpcStatus: 7 })
    expect(response.kind === 'immediate' && text(response.body)).toBe('no')
    expect(() => decoded({ immediateResponse: { status: { code: 99 } } })).toThrow(RangeError)
  })

  it('of any bytes are read or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeMessage(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
      }),
    )
  })
})

describe('structs', () => {
  const written = (value: Record<string, never>) => {
    const writer = createMessageWriter()
    writeStruct(writer, Object.entries(value))
    return writer.finish()
  }

  it('are read as written', () => {
    const anyJson = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4, noUnicodeString: false }))
    fc.assert(
      fc.property(anyJson, (value) => {
        const plain = JSON.parse(JSON.stringify(value)) as Record<string, never>
        expect(JSON.stringify(readStruct(written(plain)))).toBe(JSON.stringify(plain))
      }),
    )
  })

  it('have a limited depth', () => {
    let value: unknown = 1
    for (let depth = 0; depth < 40; depth += 1) value = { a: value }
    expect(() => readStruct(written(value as Record<string, never>))).toThrow(/nested too deeply/)
  })
})
