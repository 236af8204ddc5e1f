import { expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { checkExtProc, initialMetadataNamespace } from './config.ts'
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
])('a metadata name that gRPC does not permit is an issue: %s', (name) => {
  const issues: unknown[] = []
  const values = { [name]: '"a"', 'X-Other': '"b"' }
  const config = { host: 'processor:1', metadataContext: { [initialMetadataNamespace]: values } }
  const variables = new Set(['request'])
  checkExtProc(config, { request: variables, reply: variables }, (path) => issues.push(path.at(-1)))
  expect(issues).toEqual([name])
})
