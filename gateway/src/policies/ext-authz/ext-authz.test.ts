import { expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { SecretText } from '../../cel/secret-text.ts'
import { createMessageWriter } from '../../lib/protobuf/message-writer.ts'
import type { OutgoingRequest } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { editRequestHeaders } from '../../pipeline/request-edits.ts'
import type { ExtAuthzConfig } from './config.ts'
import { compileExtAuthz } from './ext-authz.ts'

async function forwardedBy(config: ExtAuthzConfig, services: Partial<CompileContext>) {
  const context = { ...fixtureContext(), ...services }
  const variables = new Set(['request'])
  const policy = compileExtAuthz(config, context, { variables, scope: 'route' })
  const exchange = fixtureExchange({ headers: { 'x-user': 'admin', 'x-other': 'a' } })
  const reply = await policy.onRequest?.(exchange)
  const headers = { ...exchange.facts.request.headers }
  for (const edit of exchange.forwarding?.headerEdits ?? []) edit(headers)
  return { reply, headers, forwarding: exchange.forwarding }
}

it('a request without a decision is forwarded without the headers of the service', async () => {
  const http = { includeResponseHeaders: ['X-User'] }
  const send = () => Promise.resolve({ status: 500, headers: {}, body: undefined })
  const config = { host: 'service.test:80', protocol: { http }, failureMode: 'allow' } as const
  const { reply, headers } = await forwardedBy(config, { send })
  expect([reply, headers]).toEqual([undefined, { 'x-other': 'a' }])
})

/** An OkHttpResponse that sets header fields. */
function allowing(fields: readonly (readonly [string, string])[]): Uint8Array {
  const writer = createMessageWriter()
  writer.begin(3)
  for (const [name, value] of fields) {
    writer.begin(2)
    writer.begin(1)
    writer.text(1, name)
    writer.text(2, value)
    writer.end()
    writer.end()
  }
  writer.end()
  return writer.finish()
}

it('no edit of an invalid decision is applied', async () => {
  const config = { host: 'service.test:80', failureMode: 'allow' } as const
  const forwardedWith = (path: string) => {
    const fields = [
      [':method', 'PUT'],
      [':scheme', 'https'],
      [':path', path],
    ] as const
    const call = () => Promise.resolve(allowing(fields))
    return forwardedBy(config, { grpc: { ...fixtureContext().grpc, method: () => call } })
  }
  expect((await forwardedWith('/valid')).forwarding).toMatchObject({ method: 'PUT', path: '/valid' })
  const { reply, headers, forwarding } = await forwardedWith('invalid')
  expect([reply, forwarding?.method, headers['x-forwarded-proto']]).toEqual([undefined, undefined, undefined])
})

/** Two services of the same exchange: the first sets fields, the second records its requests. */
async function askBoth(
  fields: readonly (readonly [string, string])[],
  config: Pick<ExtAuthzConfig, 'cache' | 'includeRequestHeaders'>,
) {
  const asked: OutgoingRequest[] = []
  const grpc = { ...fixtureContext().grpc, method: () => () => Promise.resolve(allowing(fields)) }
  const send = (request: OutgoingRequest) => {
    asked.push(request)
    return Promise.resolve({ status: 200, headers: {}, body: undefined })
  }
  const context = { ...fixtureContext(), grpc, send }
  const options = { variables: new Set(['request']), scope: 'gateway' }
  const first = compileExtAuthz({ host: 'first.test:80' }, context, options)
  const http = { host: 'second.test:80', protocol: { http: {} }, ...config }
  const second = compileExtAuthz(http, context, { ...options, scope: 'route' })
  async function ask(more: readonly (readonly [string, string])[] = []) {
    const exchange = fixtureExchange({ headers: { 'x-user': 'admin' } })
    await first.onRequest?.(exchange)
    editRequestHeaders(
      exchange,
      more.map(([name, value]) => ({ kind: 'set', name, value })),
    )
    await second.onRequest?.(exchange)
  }
  return { asked, ask }
}

it('a service decides on the request as the service of an earlier scope has edited it', async () => {
  const fields = [
    ['x-user', 'nobody'],
    [':method', 'PUT'],
    [':path', '/other?a=b'],
    [':authority', 'other.test'],
  ] as const
  const { asked, ask } = await askBoth(fields, { includeRequestHeaders: ['x-user', ':authority'] })
  await ask()
  expect(asked).toMatchObject([
    { method: 'PUT', path: '/other?a=b', headers: { 'x-user': 'nobody', host: 'other.test' } },
  ])
})

it('a cached decision is not used for a request with other edits', async () => {
  const { asked, ask } = await askBoth([], { cache: { key: ['request.path'], ttl: '1h' } })
  await ask()
  await ask()
  expect(asked).toHaveLength(1)
  await ask([['x-user', 'nobody']])
  await ask([['x-user', 'nobody']])
  expect(asked).toHaveLength(2)
})

it.each(['jwt.rawToken', 'jwt.rawToken.unredacted()', 'toJson({"a": jwt.rawToken})'])(
  'a decision with the cache key %s is not used for another user',
  async (key) => {
    let calls = 0
    const send = () => {
      calls += 1
      return Promise.resolve({ status: 200, headers: {}, body: undefined })
    }
    const config = { host: 'service.test:80', protocol: { http: {} }, cache: { key: [key], ttl: '1h' } }
    const options = { variables: new Set(['request', 'jwt']), scope: 'route' }
    const policy = compileExtAuthz(config, { ...fixtureContext(), send }, options)
    const ask = (token: string) =>
      policy.onRequest?.(fixtureExchange({}, { jwt: { sub: 'x' }, token: new SecretText(token) }))
    for (const token of ['alice', 'bob', 'alice']) await ask(token)
    expect(calls).toBe(2)
  },
)
