import { describe, expect, it } from 'vitest'
import { fixtureConnection } from '../../test/fixtures/pipeline.ts'
import type { LedgerEntry } from '../ledger/entry.ts'
import { parseCidr } from '../lib/address/cidr.ts'
import { createCancellation } from '../lib/cancellation.ts'
import { GatewayError } from '../lib/gateway-error.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import type { Reply } from '../net/http-client/send.ts'
import { createMetrics } from '../telemetry/metrics/metrics.ts'
import { type ClientReader, createClientReader } from './client-address.ts'
import { refuse } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { createPipeline } from './pipeline.ts'
import type { Policy } from './policy.ts'
import type { Route } from './snapshot.ts'

const clock = { now: () => 0, monotonic: () => 7 }
const delivered = { complete: true, status: 200, bytesSent: 0, firstByteAt: 7 }

function ok(): Reply {
  return { status: 200, headers: {}, body: Buffer.from('ok') }
}

function request(target = '/a', rest: Partial<IncomingRequest> = {}): IncomingRequest {
  return {
    method: 'GET',
    target,
    version: '1.1',
    headers: { host: 'h' },
    connection: fixtureConnection(),
    upgrade: undefined,
    informational: undefined,
    body: undefined,
    cancellation: createCancellation(),
    startedAt: 1,
    ...rest,
  }
}

type More = { clients?: ClientReader | undefined; traffic?: 'llm' | 'mcp' }

function pipelineOf(policies: Policy[], backend: Route['backend'] = ok, { clients, traffic }: More = {}) {
  const lines: string[] = []
  const entries: LedgerEntry[] = []
  const metrics = createMetrics()
  const route: Route = {
    name: 'r',
    policies,
    backend,
    meter: metrics.route('r'),
    errorFormat: () => 'openai',
    traffic,
  }
  const log = {
    debug() {},
    info() {},
    warn() {},
    error() {},
    audit() {},
    async flush() {},
    writeLine: (line: string) => lines.push(line),
  }
  const handle = createPipeline({
    listener: () => ({
      key: 'k',
      host: 'h',
      port: 1,
      kind: 'http' as const,
      tls: undefined,
      clients,
      match: ({ path }) => (path === '/a' ? { target: route, prefix: '/a' } : undefined),
    }),
    log,
    clock,
    unrouted: metrics.route(''),
    ledger: { record: (entry) => entries.push(entry) },
  })
  return { handle, lines, entries, metrics }
}

/** A policy that writes down which of its phases ran. */
function tracing(name: string, trace: string[], outcome?: () => Reply): Policy {
  return {
    name,
    onRequest() {
      trace.push(`${name} request`)
      return outcome?.()
    },
    onReply(_, reply) {
      trace.push(`${name} reply`)
      return reply
    },
    onEnd() {
      trace.push(`${name} end`)
    },
  }
}

describe('request ids', () => {
  const id = expect.stringMatching(/^[0-9a-f-]{13}-7[0-9a-f-]{21}$/)

  it.each<[string, Route['backend']]>([
    ['responses', () => ({ ...ok(), headers: { 'x-request-id': 'of the upstream' } })],
    ['errors', () => Promise.reject(new GatewayError('upstream_reset', 'reset'))],
  ])('are in %s of LLM and MCP routes, in the log and in the ledger', async (_, backend) => {
    for (const traffic of ['llm', 'mcp'] as const) {
      const { handle, lines, entries } = pipelineOf([], backend, { traffic })
      const exchange = handle(request('/a', { method: 'POST' }))
      const { headers, status } = await exchange.reply
      exchange.end({ ...delivered, status })
      expect(headers['x-request-id']).toEqual(id)
      expect(JSON.parse(lines[0] ?? '')).toMatchObject({ requestId: headers['x-request-id'] })
      expect(entries.map((entry) => entry.id)).toEqual(status === 200 ? [] : [headers['x-request-id']])
    }
  })

  it('are not in responses of other routes, which are not recorded', async () => {
    const { handle, lines, entries } = pipelineOf([], () => Promise.reject(new Error('x')))
    const exchange = handle(request('/a', { method: 'POST' }))
    expect((await exchange.reply).headers['x-request-id']).toBeUndefined()
    exchange.end(delivered)
    expect(lines[0]).not.toContain('requestId')
    expect(entries).toEqual([])
  })
})

describe('createPipeline', () => {
  it('runs policies in order, replies in reverse, ends in order', async () => {
    const trace: string[] = []
    const { handle } = pipelineOf([tracing('a', trace), tracing('b', trace)])
    const exchange = handle(request())
    expect((await exchange.reply).status).toBe(200)
    exchange.end(delivered)
    expect(trace).toEqual(['a request', 'b request', 'b reply', 'a reply', 'a end', 'b end'])
  })

  it('skips policies after a refusal', async () => {
    const trace: string[] = []
    const refusal: Reply = { status: 401, headers: {}, body: undefined }
    const { handle } = pipelineOf(
      [tracing('a', trace), tracing('b', trace, () => refusal), tracing('c', trace)],
      () => {
        trace.push('backend')
        return ok()
      },
    )
    const exchange = handle(request())
    expect(await exchange.reply).toBe(refusal)
    exchange.end(delivered)
    expect(trace).toEqual(['a request', 'b request', 'b reply', 'a reply', 'a end', 'b end'])
  })

  it('replies to an unexpected error without its cause, and logs it', async () => {
    const { handle, lines } = pipelineOf([], () => {
      throw new TypeError('secret detail')
    })
    const exchange = handle(request())
    const reply = await exchange.reply
    exchange.end({ ...delivered, status: reply.status })
    expect(reply.status).toBe(500)
    expect(String(reply.body)).not.toContain('secret detail')
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ status: 500, error: { message: 'secret detail' } })
  })

  it('maps a gateway error to its status in the shape of the route', async () => {
    const { handle } = pipelineOf([], () => {
      throw new GatewayError('upstream_timeout', 'upstream call timeout')
    })
    const reply = await handle(request()).reply
    expect(reply.status).toBe(504)
    expect(JSON.parse(String(reply.body)).error).toMatchObject({
      code: 'upstream_timeout',
      type: 'server_error',
    })
  })

  it('withholds the response if a policy fails, and still runs the outer policies', async () => {
    const trace: string[] = []
    const failing: Policy = {
      name: 'guard',
      onReply() {
        throw new Error('guard broke')
      },
    }
    const { handle } = pipelineOf([tracing('cors', trace), failing])
    const reply = await handle(request()).reply
    expect(reply.status).toBe(500)
    expect(trace).toEqual(['cors request', 'cors reply'])
  })

  it('cancels a withheld response', async () => {
    let cancelled = 0
    const failing: Policy = {
      name: 'guard',
      onReply() {
        throw new Error('guard broke')
      },
    }
    const body = { start() {}, resume() {}, cancel: () => void cancelled++ }
    const { handle } = pipelineOf([failing], () => ({ status: 200, headers: {}, body }))
    expect((await handle(request()).reply).status).toBe(500)
    expect(cancelled).toBe(1)
  })

  it('ends every policy even if one fails', async () => {
    const trace: string[] = []
    const failing: Policy = {
      name: 'x',
      onEnd() {
        throw new Error('late')
      },
    }
    const { handle, lines } = pipelineOf([failing, tracing('b', trace)])
    const exchange = handle(request())
    await exchange.reply
    exchange.end(delivered)
    expect(trace).toContain('b end')
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ error: { message: 'late' } })
  })

  it.each([
    ['/other', 404],
    ['/%zz', 400],
  ])('replies to %s with %i and one log line', async (target, status) => {
    const { handle, lines } = pipelineOf([])
    const exchange = handle(request(target))
    expect((await exchange.reply).status).toBe(status)
    exchange.end({ ...delivered, status })
    expect(lines).toHaveLength(1)
  })

  it.each<[string, Partial<IncomingRequest>, number]>([
    ['no host', { headers: {} }, 400],
    ['two hosts', { headers: { host: ['a', 'b'] } }, 400],
    ['a list of hosts', { headers: { host: 'a, b' } }, 400],
    ['a host with a user', { headers: { host: 'a@b' } }, 400],
    ['a host with a space', { headers: { host: 'a b' } }, 400],
    ['an empty host', { headers: { host: '' } }, 200],
    ['a host with a port', { headers: { host: '[::1]:80' } }, 200],
    ['no host in HTTP/1.0', { headers: {}, version: '1.0' }, 200],
  ])('replies to a request with %s', async (_, rest, status) => {
    const { handle } = pipelineOf([])
    expect((await handle(request('/a', rest)).reply).status).toBe(status)
  })

  /** The exchange as the backend sees it. */
  async function seen(rest: Partial<IncomingRequest>, clients?: ClientReader): Promise<Exchange> {
    const exchanges: Exchange[] = []
    const { handle } = pipelineOf(
      [],
      (exchange) => {
        exchanges.push(exchange)
        return ok()
      },
      { clients },
    )
    await handle(request(rest.target, rest)).reply
    const [exchange] = exchanges
    if (!exchange) throw new Error('not routed')
    return exchange
  }

  it('accepts absolute targets only with the host of the header', async () => {
    const { facts } = await seen({ target: 'http://H/a' })
    expect(facts.request).toMatchObject({ host: 'h', path: '/a' })
    await expect(seen({ target: 'http://other/a' })).rejects.toThrow('not routed')
  })

  it('uses the peer as the client, IPv4 in dotted notation', async () => {
    const headers = { host: 'h', 'x-forwarded-for': '1.1.1.1', 'x-forwarded-proto': 'https' }
    const { facts, peer } = await seen({
      connection: fixtureConnection({ remoteAddress: '::ffff:203.0.113.9', remotePort: 4711 }),
      headers,
    })
    expect(facts.source).toMatchObject({ address: '203.0.113.9', port: 4711 })
    expect(facts.request).toMatchObject({ scheme: 'http', host: 'h' })
    expect(peer).toBeUndefined()
  })

  it('resolves the client through trusted proxies, and retains the proxy', async () => {
    const range = parseCidr('10.0.0.0/8')
    const clients = createClientReader({ trusted: range ? [range] : [] })
    const headers = {
      host: 'inner',
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'a.test',
    }
    const { facts, peer } = await seen(
      { connection: fixtureConnection({ remoteAddress: '::ffff:10.0.0.1' }), headers },
      clients,
    )
    expect(facts.source).toMatchObject({ address: '203.0.113.9', port: 0, rawAddress: '10.0.0.1' })
    expect(facts.request).toMatchObject({ scheme: 'https', host: 'a.test' })
    expect(peer).toEqual({ address: '10.0.0.1', scheme: 'http', host: 'inner' })

    const direct = await seen(
      { connection: fixtureConnection({ remoteAddress: '203.0.113.7' }), headers },
      clients,
    )
    expect(direct.facts.source).toMatchObject({ address: '203.0.113.7', port: 1 })
    expect(direct.facts.request).toMatchObject({ scheme: 'http', host: 'inner' })
    expect(direct.peer).toBeUndefined()
  })

  it('counts a client that disconnected before a response as 499', async () => {
    const { handle, metrics } = pipelineOf([])
    const exchange = handle(request())
    await exchange.reply
    exchange.end({ complete: false, status: undefined, bytesSent: 0, firstByteAt: undefined })
    expect((await metrics.render()).text).toContain('tollgate_requests_total{route="r",status="499"} 1')
  })
})

describe('the recording of a request', () => {
  it('has the steps that waited, the step that stopped the request, and an explanation', async () => {
    const waiting: Policy = { name: 'waits', onRequest: () => Promise.resolve(undefined) }
    const stopping: Policy = { name: 'stops', onRequest: () => ({ ...ok(), status: 403 }) }
    const { handle, entries } = pipelineOf([waiting, stopping], ok, { traffic: 'mcp' })
    const exchange = handle(request('/a', { method: 'POST' }))
    await exchange.reply
    exchange.end({ ...delivered, status: 403 })
    expect(entries).toEqual([])
    const refusing: Policy = {
      name: 'refuses',
      onRequest: (refused) => refuse(refused, { status: 403, code: 'no', message: 'no' }),
    }
    const recorded = pipelineOf([waiting, refusing], ok, { traffic: 'mcp' })
    const refused = recorded.handle(request('/a', { method: 'POST' }))
    await refused.reply
    refused.end({ ...delivered, status: 403 })
    expect(JSON.parse(recorded.entries[0]?.details.explanation ?? '')).toMatchObject({
      cause: 'no',
      outcome: { status: 403, stoppedBy: 'refuses' },
      times: { waits: [{ step: 'waits', ms: 0 }] },
      policies: [
        { policy: 'waits', result: 'passed' },
        { policy: 'refuses', result: 'stopped' },
      ],
    })
  })
})
