import { expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { initialMetadataNamespace } from './config.ts'
import { compileContext } from './context.ts'

function metadataOf(values: Record<string, string>, headers: Record<string, string> = {}) {
  const variables = new Set(['request'])
  const context = compileContext(
    { host: 'processor:1', metadataContext: { [initialMetadataNamespace]: values } },
    { request: variables, reply: variables },
  )
  return context.initialMetadata(fixtureExchange({ headers }).facts)
}

it.each(['caf\u00e9', 'a\tb', 'a\u007f', '\u20ac'])(
  'a metadata value that gRPC does not permit is omitted: %j',
  (value) => {
    const values = { 'x-name': 'request.headers["x-name"]', 'x-other': '"b c"' }
    expect(metadataOf(values, { 'x-name': value })).toEqual([['x-other', 'b c']])
  },
)

it.each([
  'x!name',
  "x'name",
  'x|name',
  'grpc-x',
  'x-bin',
  'te',
  'host',
  'Connection',
  'content-length',
  'transfer-encoding',
])('a metadata name that gRPC does not permit is omitted: %s', (name) => {
  expect(metadataOf({ [name]: '"a"', 'X-Other': '"b"' })).toEqual([['x-other', 'b']])
})
