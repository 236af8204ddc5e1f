import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, textOf, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { checkTransformations, type TransformationsConfig } from './config.ts'
import { compileTransformations } from './transformations.ts'

const request = new Set(['request', 'request.body', 'jwt', 'metadata', 'source'])
const variables = { request, response: new Set([...request, 'response', 'response.body']) }

function compile(config: TransformationsConfig, context = fixtureContext()) {
  return compileTransformations(config, context, { variables, scope: 'route a', maxBodyBytes: 1_000 })
}

function forward(config: TransformationsConfig, exchange: Exchange): Headers {
  throughPolicies([compile(config)], exchange)
  const headers = { ...exchange.facts.request.headers }
  for (const edit of exchange.forwarding?.headerEdits ?? []) edit(headers)
  return headers
}

async function answer(
  response: TransformationsConfig['response'],
  reply: Partial<Reply>,
  exchange = fixtureExchange(),
) {
  const policy = compile({ response })
  const received = { status: 200, headers: {}, body: undefined, ...reply }
  return (await policy.onReply?.(exchange, received)) ?? received
}

function mistakes(config: TransformationsConfig): string[] {
  const found: string[] = []
  checkTransformations(config, variables, (path, message) => found.push(`${path.join('.')}: ${message}`))
  return found
}

describe('transformations of requests', () => {
  it('add, set and remove headers by expressions over the original request', () => {
    const exchange = fixtureExchange({ headers: { 'x-a': '1', 'x-b': '2', 'x-c': '3' } })
    const set = { 'X-B': '"new"', 'x-copy': 'request.headers["x-b"]', 'x-count': '1 + 1' }
    expect(forward({ request: { add: { 'x-a': 'request.path' }, set, remove: ['X-C'] } }, exchange)).toEqual({
      'x-a': '1,/v1/chat/completions',
      'x-b': 'new',
      'x-copy': '2',
      'x-count': '2',
    })
  })

  it('remove a header whose expression fails or has an invalid value', () => {
    const headers = { 'x-a': 'of the client', 'x-b': 'of the client', 'x-c': 'of the client' }
    const set = { 'x-a': 'jwt.sub', 'x-b': '"a\\nb"', 'x-c': '[1]' }
    expect(forward({ request: { set } }, fixtureExchange({ headers }))).toEqual({})
  })

  it('count expressions without a usable value', () => {
    const context = fixtureContext()
    const policy = compile({ request: { set: { 'x-a': 'jwt.sub', ':path': '"no path"' } } }, context)
    throughPolicies([policy], fixtureExchange())
    expect(context.decisions.get('route a request failed')).toBe(2)
  })

  it('change pseudo-headers, and the host by its header', () => {
    const exchange = fixtureExchange()
    const set = { ':path': '"/new?" + request.method', ':method': '"PUT"', host: '"a.example"' }
    forward({ request: { set } }, exchange)
    expect(exchange.forwarding).toMatchObject({
      path: '/new',
      query: '?POST',
      method: 'PUT',
      host: 'a.example',
    })
  })

  it('evaluate metadata first', () => {
    const exchange = fixtureExchange()
    const config = { metadata: { tier: '"gold"' }, set: { 'x-tier': 'metadata.tier' } }
    expect(forward({ request: config }, exchange)).toMatchObject({ 'x-tier': 'gold' })
    expect(exchange.facts.metadata).toEqual({ tier: 'gold' })
  })

  it('replace all headers by a map', () => {
    const exchange = fixtureExchange({ headers: { 'x-a': '1', 'x-b': '2', 'content-length': '3' } })
    const replace = '{"X-A": request.headers["x-a"], "x-list": ["1", "2"], "connection": "close"}'
    expect(forward({ request: { replace, add: { 'x-b': '"new"' } } }, exchange)).toEqual({
      'x-a': '1',
      'x-list': ['1', '2'],
      'x-b': 'new',
      'content-length': '3',
    })
  })

  it('do not replace withheld headers and those of the MCP transport', () => {
    const client = {
      'x-a': '1',
      'x-real-ip': '1.2.3.4',
      'x-original-url': '/admin',
      'mcp-session-id': 'other',
    }
    const exchange = fixtureExchange({ headers: client })
    const replace = 'request.headers.merge({"x-b": "2"})'
    throughPolicies([compile({ request: { replace } })], exchange)
    const headers = {
      'x-a': '1',
      'x-forwarded-for': 'of the gateway',
      'mcp-protocol-version': 'of the gateway',
    }
    for (const edit of exchange.forwarding?.headerEdits ?? []) edit(headers)
    expect(headers).toEqual({
      'x-a': '1',
      'x-b': '2',
      'x-forwarded-for': 'of the gateway',
      'mcp-protocol-version': 'of the gateway',
    })
  })

  it.each([
    { replace: '"text"' },
    { replace: 'jwt.headers' },
    { set: { ':path': '"no path"' } },
    { set: { ':path': 'jwt.path' } },
    { set: { ':method': 'jwt.method' } },
    { set: { host: 'jwt.host' } },
    { set: { ':scheme': '"ftp"' } },
  ])('refuse a request with the failed expression %o', (request) => {
    const exchange = fixtureExchange({ headers: { 'x-a': '1' } })
    const reply = throughPolicies([compile({ request })], exchange)
    expect(reply.status).toBe(400)
    expect(textOf(reply)).toContain('the request cannot be transformed')
    expect(exchange.log.errorCode).toBe('transformation_failed')
  })

  it('refuse a request whose earlier expressions exhaust the work limit', () => {
    const exchange = fixtureExchange({ query: 'a'.repeat(8_000_000), path: '/a' })
    const set = { 'x-a': 'string(size(request.query))', ':path': 'request.path.replace("a", "b")' }
    expect(throughPolicies([compile({ request: { set } })], exchange).status).toBe(400)
  })

  it.each([
    ['"text"', 'text'],
    ['{"a": [1, 9007199254740993]}', '{"a":[1,9007199254740993]}'],
    ['jwt.sub', undefined],
    ['""', undefined],
  ])('replace the body by %s', (body, expected) => {
    const exchange = fixtureExchange()
    exchange.body = Buffer.from('old')
    throughPolicies([compile({ request: { body } })], exchange)
    expect(exchange.body && String(exchange.body)).toBe(expected)
  })

  it('do not create a body beyond the limit', () => {
    const exchange = fixtureExchange({ headers: { 'x-a': 'a'.repeat(600) } })
    throughPolicies(
      [compile({ request: { body: 'request.headers["x-a"] + request.headers["x-a"]' } })],
      exchange,
    )
    expect(exchange.body).toBeUndefined()
  })

  it('never forward a value that is invalid in a header', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const exchange = fixtureExchange({ query: text })
        const { 'x-a': value } = forward({ request: { set: { 'x-a': 'request.query' } } }, exchange)
        expect(value === undefined || /^[\t\x20-\x7e\x80-\xff]*$/.test(String(value))).toBe(true)
      }),
    )
  })
})

describe('transformations of responses', () => {
  it('see status and headers, and replace them', async () => {
    const set = { ':status': 'response.code + 1', 'x-code': 'string(response.code)' }
    const reply = await answer({ set, remove: ['server'] }, { headers: { server: 'x', 'x-a': '1' } })
    expect(reply).toMatchObject({ status: 201, headers: { 'x-a': '1', 'x-code': '200' } })
    expect(reply.headers).not.toHaveProperty('server')
  })

  it('replace the body and the fields about it', async () => {
    const reply = await answer(
      { body: '"was " + string(response.body)' },
      { headers: { 'content-length': '3', etag: '"x"' }, body: Buffer.from('old') },
    )
    expect(String(reply.body)).toBe('was old')
    expect(reply.headers).toEqual({ etag: 'W/"x"' })
  })

  it('leave event streams that the expression would read', async () => {
    const body = { start() {}, resume() {}, cancel() {} }
    const headers = { 'content-type': 'text/event-stream' }
    expect((await answer({ body: 'string(response.body)' }, { headers, body })).body).toBe(body)
  })

  it('refuse a body beyond the limit', async () => {
    const reply = await answer({ body: 'string(response.body)' }, { body: Buffer.alloc(2_000, 'a') })
    expect(reply.status).toBe(502)
  })

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('leave the absent body of %s with status %s', async (method, status) => {
    const reply = await answer({ body: '"new"' }, { status }, fixtureExchange({ method }))
    expect(reply.body).toBeUndefined()
  })

  it('leave status and body of an upgrade', async () => {
    const reply = await answer({ set: { ':status': '200', 'x-a': '"1"' }, body: '"new"' }, { status: 101 })
    expect(reply).toMatchObject({ status: 101, headers: { 'x-a': '1' }, body: undefined })
  })
})

describe('the checks of transformations', () => {
  it('report unknown variables and headers that cannot be changed', () => {
    expect(
      mistakes({
        request: {
          set: { 'x-a': 'response.code', ':status': '200', 'Transfer-Encoding': '"x"', 'x y': '"x"' },
          add: { ':path': '"/"', host: '"a"' },
          remove: ['connection', ':method'],
        },
        response: { set: { ':path': '"/"', host: '"a"' }, metadata: { 'any name': '1' } },
      }),
    ).toEqual([
      expect.stringMatching(/^request\.set\.x-a: unknown variable/),
      'request.add.:path: is a pseudo-header: use set',
      'request.add.host: host must be replaced: use set',
      'request.set.:status: is not a pseudo-header of a request: use :method, :path, :authority and :scheme',
      'request.set.Transfer-Encoding: transfer-encoding is generated for each message: remove this entry',
      'request.set.x y: must be the name of a header, got "x y"',
      'request.remove.0: connection is generated for each message: remove this entry',
      'request.remove.1: is a pseudo-header: use set',
      'response.set.:path: is not a pseudo-header of a response: use :status',
      'response.set.host: host is generated for each message: remove this entry',
    ])
  })

  it('accept a valid policy', () => {
    expect(
      mistakes({ request: { set: { 'x-a': 'request.path' } }, response: { body: 'response.body' } }),
    ).toEqual([])
  })
})
