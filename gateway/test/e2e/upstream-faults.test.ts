import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Lifetime } from '../support/cleanup.ts'
import { type Fault, faultyUpstream } from '../support/faulty-upstream.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { chat, llmConfig, openAiModel } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { member, startMockServer } from '../support/mock-server.ts'
import { eventsOf, readStream } from '../support/sse.ts'
import { until, within } from '../support/wait.ts'

/** One gateway in front of an upstream for each fault, with short time limits. */
const unstreamed: { fault: Fault; status: number }[] = [
  { fault: 'refuses', status: 503 },
  { fault: 'resets', status: 502 },
  { fault: 'closes before the head', status: 502 },
  { fault: 'closes mid body', status: 502 },
  { fault: 'stalls before the head', status: 504 },
  { fault: 'content-length too large', status: 502 },
  { fault: 'content-length too small', status: 502 },
  { fault: 'garbage instead of HTTP', status: 502 },
  { fault: 'garbage JSON', status: 502 },
  { fault: 'HTML with 502', status: 502 },
  { fault: 'huge headers', status: 502 },
  { fault: 'gzip bomb', status: 502 },
  { fault: 'empty answer', status: 502 },
  { fault: 'JSON of the wrong shape', status: 502 },
  { fault: 'two length headers', status: 502 },
]

function config(urls: Map<Fault, string>): GatewayConfig {
  return llmConfig(
    {},
    {
      models: [...urls].map(([fault, url]) => openAiModel(fault, url)),
      timeouts: { firstByte: '1s', idle: '1s' },
    },
  )
}

async function gatewayBefore(faults: readonly Fault[], lifetime: Lifetime = 'test') {
  const upstreams = await Promise.all(faults.map((fault) => faultyUpstream(fault, lifetime)))
  const urls = new Map(faults.map((fault, index) => [fault, upstreams[index]?.url ?? '']))
  return { gateway: await startGateway(config(urls), { lifetime }), upstreams }
}

describe('an unstreamed call', () => {
  let gateway: Gateway

  beforeAll(async () => {
    const faults = unstreamed.map(({ fault }) => fault)
    gateway = (await gatewayBefore(faults, 'file')).gateway
  })

  it.each(unstreamed)('to an upstream that $fault is answered $status in JSON', async ({ fault, status }) => {
    const response = await within('an answer', chat(gateway, { model: fault }))
    const text = await response.text()
    expect([response.status, text]).toEqual([status, expect.any(String)])
    expect(response.headers.get('content-type')).toContain('application/json')
    expect(member(JSON.parse(text), 'error', 'message')).toEqual(expect.any(String))
    // No internals of the gateway's network: no addresses, no host names.
    expect(text).not.toMatch(/127\.0\.0\.1|ECONN|internal-host/)
    const metrics = await gateway.metrics()
    expect(metricValue(metrics, 'tollgate_upstream_errors_total', { model: fault })).toBe(1)
    expect((await chat(gateway, { model: fault })).status).toBe(status)
  })

  it('does not follow redirects', async () => {
    const { gateway } = await gatewayBefore(['redirects'])
    const response = await chat(gateway, { model: 'redirects' }, {})
    expect(response.redirected).toBe(false)
    expect(await response.text()).not.toContain('169.254.169.254')
  })

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['zstd', zstdCompressSync],
  ] as [string, (text: string) => Buffer][])(
    'reads a whole answer compressed with %s and refuses a stream',
    async (coding, compress) => {
      const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
      const upstream = await startMockServer(({ json }, response) => {
        const streamed = member(json, 'stream') === true
        const body = streamed
          ? `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`
          : JSON.stringify({ id: 'x', choices: [], usage })
        const type = streamed ? 'text/event-stream' : 'application/json'
        response.writeHead(200, { 'content-type': type, 'content-encoding': coding }).end(compress(body))
      })
      const gateway = await startGateway(llmConfig({ openai: upstream }))
      expect(await (await chat(gateway, { model: 'gpt-test' })).json()).toMatchObject({ usage })
      const [line] = await gateway.logged(1)
      expect(line?.['totalTokens']).toBe(7)
      // The gateway asks for plain streams; one that is compressed all the same never gets past it unread.
      const streamed = await chat(gateway, { model: 'gpt-test', stream: true })
      expect([streamed.status, await streamed.text()]).toEqual([502, expect.stringContaining('compressed')])
    },
  )

  it('gets through an upstream that sends three bytes at a time', async () => {
    const { gateway } = await gatewayBefore(['slow drip'])
    const { text, broken } = await readStream(await chat(gateway, { model: 'slow drip', stream: true }))
    expect(broken).toBe(false)
    expect(text).toContain('drip')
    expect(text).toContain('[DONE]')
  })
})

describe('a streamed call', () => {
  it.each([['closes mid stream'], ['stalls mid stream']] as [Fault][])(
    'to an upstream that %s ends in an error event, without [DONE]',
    async (fault) => {
      const { gateway, upstreams } = await gatewayBefore([fault])
      const response = await chat(gateway, { model: fault, stream: true })
      expect(response.status).toBe(200)
      const { text } = await within('the end of the stream', readStream(response), 15_000)
      expect(text).toContain('one')
      expect(text).not.toContain('[DONE]')
      expect(member(JSON.parse(eventsOf(text).at(-1)?.data ?? 'null'), 'error', 'message')).toEqual(
        expect.any(String),
      )
      await until('the connection to the upstream is closed', () => upstreams[0]?.open() === 0)
    },
  )

  it('passes an error event of the upstream on', async () => {
    const { gateway } = await gatewayBefore(['error event mid stream'])
    const { text } = await readStream(await chat(gateway, { model: 'error event mid stream', stream: true }))
    expect(text).toContain('The server had an error')
    expect(text).not.toContain('[DONE]')
  })

  it.each([
    ['refuses', 503],
    ['resets', 502],
    ['stalls before the head', 504],
    ['HTML with 502', 502],
  ] as [Fault, number][])('to an upstream that %s keeps its status %d', async (fault, status) => {
    const { gateway } = await gatewayBefore([fault])
    expect((await chat(gateway, { model: fault, stream: true })).status).toBe(status)
  })
})

describe('a line without end in a stream', () => {
  it('is cut off before it fills the memory', async () => {
    const { gateway } = await gatewayBefore(['huge SSE line'])
    const response = await chat(gateway, { model: 'huge SSE line', stream: true })
    let size = 0
    try {
      for await (const chunk of response.body ?? []) size += chunk.byteLength
    } catch {
      // A truncated response is expected here.
    }
    expect(size).toBeLessThan(60 * 1024 * 1024)
    expect((await chat(gateway, { model: 'nobody' })).status).toBe(404)
  })
})
