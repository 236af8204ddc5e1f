import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../../test/fixtures/pipeline.ts'
import { createCancellation } from '../../../../lib/cancellation.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../../lib/json/json.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import { check } from '../../../../schema/check.ts'
import type { TargetFailure } from '../../message/message.ts'
import type { CallContext } from '../target.ts'
import { checkOpenApi, compileOpenApi, type OpenApiConfig, openApiSchema } from './openapi.ts'

const schema = {
  openapi: '3.1.0',
  info: { title: 'Pets', version: '2' },
  servers: [{ url: 'https://elsewhere.test/v1' }],
  paths: { '/pets': { get: { operationId: 'list', parameters: [{ name: 'X-Own', in: 'header' }] } } },
}

type Outcome = { text: string | undefined; failure: TargetFailure | undefined; ended: boolean }

function start(
  config: { schema?: OpenApiConfig['schema']; host?: string; path?: string } = {},
  answer: Reply | Error = reply('{"a":1}'),
) {
  const sent: OutgoingRequest[] = []
  const { promise: never } = Promise.withResolvers<Reply>()
  const answers = { next: answer as Reply | Error | undefined }
  const target = compileOpenApi(
    'pets',
    { host: 'http://api.test', schema, ...config },
    {
      ...fixtureContext(),
      parseYaml: JSON.parse,
      send(request) {
        sent.push(request)
        const { next } = answers
        if (next === undefined) return never
        return next instanceof Error ? Promise.reject(next) : Promise.resolve(next)
      },
    },
  )
  const session = target.open()
  function begin(text: string, headers: CallContext['headers'] = {}) {
    const outcome: Outcome = { text: undefined, failure: undefined, ended: false }
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const sink = {
      message(message: { text: string }) {
        outcome.text = message.text
        return true
      },
      mark() {},
      end() {
        outcome.ended = true
        resolve(outcome)
      },
      fail(failure: TargetFailure) {
        outcome.failure = failure
        resolve(outcome)
      },
    }
    const context = { headers, cancellation: createCancellation() }
    const flow = session.request({ text, value: JSON.parse(text) }, context, sink)
    return { outcome, over: promise, flow }
  }
  async function ask(text: string, headers?: CallContext['headers']): Promise<JsonObject> {
    const { text: answered, failure } = await begin(text, headers).over
    if (answered === undefined) throw new Error(`no answer: ${JSON.stringify(failure)}`)
    const value: JsonObject = JSON.parse(answered)
    return value
  }
  return { target, session, sent, answers, begin, ask }
}

function reply(text: string, headers: Reply['headers'] = {}): Reply {
  return { status: 200, headers, body: Buffer.from(text) }
}

const callList = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}}'

describe('an OpenAPI target', () => {
  it.each([
    ['2025-06-18', '2025-06-18'],
    ['1999-01-01', '2025-11-25'],
  ])('asked for %s introduces itself with %s', async (asked, protocolVersion) => {
    const { ask } = start()
    const text = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"${asked}"}}`
    expect(await ask(text)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'Pets', version: '2' } },
    })
  })

  it('answers with the id exactly as it was sent', async () => {
    const { begin } = start()
    const { text } = await begin('{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}').over
    expect(text).toBe('{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}')
  })

  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}', -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"constructor"}}', -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602],
  ])('refuses %s', async (text, code) => {
    const { ask, sent } = start()
    expect(await ask(text)).toMatchObject({ id: 1, error: { code } })
    expect(sent).toEqual([])
  })

  it.each([
    ['http://api.test', 'http://api.test', '/v1/pets'],
    ['http://api.test:81/own/', 'http://api.test:81', '/own/pets'],
    ['https://api.test', 'https://api.test', '/v1/pets'],
  ])(
    'calls only the configured host, on its own path or that of the document: %s',
    async (host, origin, path) => {
      const { ask, sent } = start({ host })
      await ask(callList)
      expect(sent).toMatchObject([{ origin, path, method: 'GET', body: undefined }])
    },
  )

  it('passes on the headers of the client that do not speak about MCP, and lets arguments replace them', async () => {
    const { ask, sent } = start()
    const args = '{"header":{"X-Own":"mine"}}'
    await ask(callList.replace('"list"', `"list","arguments":${args}`), {
      'x-own': 'theirs',
      'x-team': 'blue',
      'mcp-protocol-version': '2025-11-25',
      'content-type': 'application/json',
      origin: 'http://client.test',
    })
    expect(sent[0]?.headers).toEqual({
      'x-own': 'mine',
      'x-team': 'blue',
      accept: 'application/json, */*;q=0.5',
      'accept-encoding': 'identity',
    })
  })

  it('fails the request when the API cannot be reached, or answers in an unknown encoding', async () => {
    const down = start({}, new GatewayError('upstream_connect', 'connection refused'))
    expect((await down.begin(callList).over).failure).toMatchObject({ error: { code: 'upstream_connect' } })
    const zipped = start({}, reply('x', { 'content-encoding': 'gzip' }))
    expect((await zipped.begin(callList).over).failure).toMatchObject({ error: { code: 'upstream_invalid' } })
    const huge = start({}, reply('x'.repeat(9_000_000)))
    expect((await huge.begin(callList).over).failure).toMatchObject({ error: { code: 'upstream_too_large' } })
  })

  it('ends a call when the client cancels it, or leaves', async () => {
    const { begin, session, sent, answers } = start()
    answers.next = undefined
    const [cancelled, left] = [begin(callList), begin(callList.replace('1,', '"1",'))]
    await new Promise(setImmediate)
    const text = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    await session.deliver(
      { text, value: JSON.parse(text) },
      { headers: {}, cancellation: createCancellation() },
    )
    left.flow.cancel()
    expect(sent.map(({ cancellation }) => cancellation?.cancelled)).toEqual([true, true])
    expect([cancelled.outcome, left.outcome]).toMatchObject([
      { text: undefined, failure: { kind: 'refused', status: 200 } },
      { text: undefined, failure: undefined, ended: false },
    ])
  })

  it('ends its calls with the session, which any process can go on with', async () => {
    const { begin, session, sent, answers, target } = start()
    answers.next = undefined
    begin(callList)
    await new Promise(setImmediate)
    await session.close()
    expect(sent[0]?.cancellation?.cancelled).toBe(true)
    expect(target.resume(session.state() ?? { none: true })).not.toBe(undefined)
  })

  it('answers only so many calls at once', async () => {
    const { begin, ask, answers } = start()
    answers.next = undefined
    for (let id = 0; id < 256; id += 1) begin(callList.replace('1,', `${1000 + id},`))
    expect(await ask(callList)).toMatchObject({ error: { message: 'too many pending calls' } })
  })
})

describe('the configuration of an OpenAPI target', () => {
  function mistakesIn(config: unknown): string[] {
    const checked = check(openApiSchema, config)
    if (checked.kind === 'mistakes')
      return checked.mistakes.map(({ path, message }) => `${path.join('.')}: ${message}`)
    const found: string[] = []
    checkOpenApi(checked.value, (path, message) => found.push(`${path.join('.')}: ${message}`))
    return found
  }

  it.each([{ file: 'api.yaml' }, { url: 'http://x/openapi.json' }, schema, 'openapi: 3.1.0'])(
    'accepts the document %j',
    (value) => {
      expect(mistakesIn({ host: 'http://api.test', schema: value })).toEqual([])
    },
  )

  it('reports mistakes of an inline document at their place', () => {
    const paths = { '/a/{id}': { get: {} } }
    expect(mistakesIn({ host: 'http://api.test', schema: { ...schema, paths } })).toEqual([
      'schema.paths./a/{id}.get: the path parameter "id" is not described',
    ])
  })

  it('reports keys beside file, and an address with a query', () => {
    expect(mistakesIn({ host: 'http://api.test/?x=1', schema: { file: 'x', paths: {} } })).toEqual([
      'host: must not have a query',
      'schema.paths: is not valid next to file or url',
    ])
  })
})
