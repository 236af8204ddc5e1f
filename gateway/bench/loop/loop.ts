import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../../test/support/free-port.ts'
import { stop, track } from '../subjects/processes.ts'
import { gatewayKinds, type LoopCase, loopCases, sizes } from './cases.ts'
import { startLoopUpstream } from './upstream.ts'

/** Longest stretch of CPU time of the main thread between two turns of the event loop, in ms. */
export type LoopResult = {
  cases: { name: string; size: string; status: number; longestMs: number; tookMs: number }[]
  /**
   * Requests per second of one client: alone, and next to a second client that loops over the most expensive
   * 1.5 MiB bodies.
   */
  throughput: { alone: number; beside: number; worstBodies: number }
}

export type LoopOptions = { quick: boolean; filter?: string | undefined; entry?: string | undefined }

/**
 * Sends the most expensive requests that are accepted or refused late; measures the event loop time of each.
 */
export async function measureLoop({ quick, filter, entry }: LoopOptions): Promise<LoopResult> {
  const upstream = await startLoopUpstream()
  const chosen = loopCases.filter(({ name }) => filter === undefined || name.includes(filter))
  const cases: LoopResult['cases'] = []
  let throughput: LoopResult['throughput'] = { alone: 0, beside: 0, worstBodies: 0 }
  try {
    for (const kind of gatewayKinds) {
      const mine = chosen.filter(({ gateway }) => gateway === kind)
      if (mine.length === 0 && kind !== 'plain') continue
      const gateway = await startMeasured(kind, upstream.port, entry)
      try {
        for (const size of quick ? (['middle'] as const) : (['small', 'middle', 'large'] as const)) {
          for (const each of mine) cases.push(await measureCase(gateway, each, size))
        }
        if (kind === 'plain') throughput = await measureThroughput(gateway, quick ? 500 : 3_000)
      } finally {
        await gateway.end()
      }
    }
  } finally {
    upstream.close()
  }
  return { cases, throughput }
}

type Measured = { port: number; probePort: number; end(): Promise<void> }

async function measureCase({ port, probePort }: Measured, each: LoopCase, size: keyof typeof sizes) {
  const body = Buffer.from(each.body(Math.min(sizes[size], each.maxBytes ?? sizes.large)))
  const headers = each.path === '/mcp' ? await mcpSession(port, each.path) : {}
  // The first run compiles code.
  if (!each.countsFirst) await call(port, each.path, body, headers)
  let longestMs = Number.POSITIVE_INFINITY
  let status = 0
  let tookMs = 0
  for (let run = 0; run < (each.countsFirst ? 1 : 2); run += 1) {
    await readProbe(probePort)
    const startedAt = performance.now()
    status = await call(port, each.path, body, headers)
    tookMs = performance.now() - startedAt
    await delay(5)
    longestMs = Math.min(longestMs, await readProbe(probePort))
  }
  return { name: each.name, size, status, longestMs, tookMs }
}

async function measureThroughput({ port }: Measured, ms: number): Promise<LoopResult['throughput']> {
  const small = Buffer.from('{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}')
  const worst = ['chat, many keys', 'chat, quotes', 'chat, keys of one object', 'chat, many items']
    .flatMap((name) => loopCases.find((each) => each.name === name) ?? [])
    .map(({ body }) => Buffer.from(body(sizes.middle)))
  const rate = async () => {
    const until = performance.now() + ms
    let count = 0
    while (performance.now() < until) {
      await call(port, '/v1/chat/completions', small)
      count += 1
    }
    return (count * 1000) / ms
  }
  await rate()
  const alone = await rate()
  let running = true
  let worstBodies = 0
  const attack = (async () => {
    for (let turn = 0; running; turn += 1) {
      await call(port, '/v1/chat/completions', worst[turn % worst.length] ?? small)
      worstBodies += 1
    }
  })()
  const beside = await rate()
  running = false
  await attack
  return { alone, beside, worstBodies: (worstBodies * 1000) / ms }
}

function call(
  port: number,
  path: string,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        port,
        host: '127.0.0.1',
        path,
        method: 'POST',
        agent: false,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'content-length': body.byteLength,
          ...headers,
        },
      },
      (response) => {
        response.resume()
        response.once('end', () => resolve(response.statusCode ?? 0))
        response.once('error', reject)
      },
    )
    sent.once('error', reject)
    sent.end(body)
  })
}

async function mcpSession(port: number, path: string): Promise<Record<string, string>> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}',
  })
  await response.text()
  const id = response.headers.get('mcp-session-id')
  if (id === null) throw new Error(`no MCP session: status ${response.status}`)
  const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }
  const initialized = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  await call(port, path, initialized, headers)
  return headers
}

async function readProbe(port: number): Promise<number> {
  return Number(await (await fetch(`http://127.0.0.1:${port}/`)).text())
}

const probe = new URL('../../test/support/loop-probe.ts', import.meta.url).href
const source = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

async function startMeasured(
  kind: LoopCase['gateway'],
  upstreamPort: number,
  entry = source,
): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-loop-'))
  const [port = 0, probePort = 0, admin = 0, stats = 0, ready = 0] = await freePorts(5)
  const file = join(folder, 'config.json')
  const config = {
    config: {
      bindAddress: '127.0.0.1',
      adminAddr: `127.0.0.1:${admin}`,
      statsAddr: `127.0.0.1:${stats}`,
      readinessAddr: `127.0.0.1:${ready}`,
      // The probe measures the main thread.
      workerThreads: 1,
    },
    ...sectionsOf(kind, port, `http://127.0.0.1:${upstreamPort}`),
  }
  writeFileSync(file, JSON.stringify(config))
  const child = track(
    spawn(process.execPath, ['--import', probe, entry, '-f', file], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, LOOP_PROBE_PORT: String(probePort) },
    }),
  )
  while (!(await isReady(ready))) {
    if (child.exitCode !== null) throw new Error('the gateway ended')
    await delay(50)
  }
  return {
    port,
    probePort,
    async end() {
      await stop(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/healthz/ready`).then(
    ({ ok }) => ok,
    () => false,
  )
}

const patterns = ['ACME-[0-9]{6}', '(?:a?){30}a{30}', '(?i)secret|password'].map((pattern) => ({ pattern }))

function sectionsOf(kind: LoopCase['gateway'], port: number, upstream: string): object {
  if (kind === 'mcp') {
    return {
      mcp: { port, targets: [{ name: 'a', mcp: { host: `${upstream}/mcp` } }] },
    }
  }
  if (kind === 'openapi') {
    const schema = { url: `${upstream}/openapi.yaml` }
    return { mcp: { port, targets: [{ name: 'a', openapi: { host: upstream, schema } }] } }
  }
  const params = { apiKey: 'k' }
  return {
    llm: {
      port,
      models: [
        { name: 'echo', provider: 'echo' },
        { name: 'claude*', provider: 'anthropic', params: { ...params, baseUrl: upstream } },
        { name: '*', provider: 'openai', params: { ...params, baseUrl: `${upstream}/v1` } },
      ],
      ...policiesOf(kind, upstream),
    },
  }
}

function policiesOf(kind: LoopCase['gateway'], upstream: string): object {
  if (kind === 'guarded') {
    const rules = [...patterns, { builtin: 'email' }, { builtin: 'creditCard' }, { builtin: 'phoneNumber' }]
    return { guardrails: { request: [{ regex: { rules } }] } }
  }
  if (kind === 'hooked') {
    return { guardrails: { request: [{ webhook: { target: { host: upstream.slice(7) } } }] } }
  }
  if (kind !== 'ruled') return {}
  const rules = [
    'llmRequest.messages.exists(m, m.content == "never")',
    'string(llmRequest.messages[0].content).contains("never")',
    'llmRequest.messages.exists(m, string(m.content).matches("(?:a?){30}a{30}"))',
    'string(llmRequest.messages[0].content).lowerAscii().contains("never")',
    'has(llmRequest.x) && llmRequest.x.exists(x, x == "never")',
    'llmRequest.messages.exists(m, m.content.contains("never") || m.content.matches("(?i)never|nowhere"))',
    'llmRequest.messages.exists(m, llmRequest.messages.exists(n, m.content < n.role))',
    'string(llmRequest.messages[0].content).replace("w", "never").contains("never never")',
    'string(llmRequest.messages[0].content).split(" ").exists(w, w.upperAscii() == "NEVER")',
    'has(llmRequest.x) && [1].exists(i, llmRequest.x == [i])',
  ]
  // Allow rules: one that ends at its bound on work does not end the decision.
  return { policies: { authorization: { rules } } }
}
