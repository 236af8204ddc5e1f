import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { type GatewayConfig, runTollgate, startGateway } from '../support/gateway.ts'
import { aliceKey, chat, llmConfig, models, openAiModel } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { startMockServer } from '../support/mock-server.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'
import { acts, hangs, mockWebhook } from '../support/webhook.ts'

type Counting = { port: number; open(): number; most(): number; made(): number; calls(): number }

/** A webhook that answers after a while and counts its connections. */
async function countingWebhook(pauseMs: number): Promise<Counting> {
  const sockets = new Set<Socket>()
  let most = 0
  let made = 0
  let calls = 0
  const server: Server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    calls += 1
    request.on('end', () => setTimeout(() => response.end('{"action":{}}'), pauseMs)).resume()
  })
  server.on('connection', (socket: Socket) => {
    made += 1
    sockets.add(socket)
    // The end of another connection may be read after the start of this one.
    setTimeout(() => {
      most = Math.max(most, sockets.size)
    }, 20)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endAfter('test', () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, open: () => sockets.size, most: () => most, made: () => made, calls: () => calls }
}

const guardsAt = (port: number) => {
  const webhook = { target: { host: `127.0.0.1:${port}` } }
  return { request: [{ webhook }], response: [{ webhook }] }
}

describe('connections to a webhook', () => {
  it('stay under the limit with 500 requests at once, and are kept', async () => {
    const webhook = await countingWebhook(10)
    const env = { GUARDRAIL_WEBHOOK_MAX_CONNECTIONS: '100' }
    const gateway = await startGateway(llmConfig({}, { guardrails: guardsAt(webhook.port) }), { env })
    const answers = await Promise.all(Array.from({ length: 500 }, () => chat(gateway)))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(webhook.calls()).toBe(1_000)
    expect(webhook.most()).toBeLessThanOrEqual(100)
    const made = webhook.made()
    for (let index = 0; index < 10; index += 1) await (await chat(gateway)).text()
    expect(webhook.made()).toBe(made)
  })

  it('stay under the limit across a change of the configuration', async () => {
    const webhook = await countingWebhook(300)
    const config = llmConfig({}, { guardrails: guardsAt(webhook.port) })
    const gateway = await startGateway(config, { env: { GUARDRAIL_WEBHOOK_MAX_CONNECTIONS: '4' } })
    const before = Array.from({ length: 12 }, () => chat(gateway))
    await until('the webhook is asked', () => webhook.calls() > 0)
    await gateway.reload(llmConfig({}, { guardrails: { ...guardsAt(webhook.port), streaming: 'windowed' } }))
    const after = Array.from({ length: 12 }, () => chat(gateway))
    for (const { status } of await Promise.all([...before, ...after])) expect(status).toBe(200)
    expect(webhook.most()).toBeLessThanOrEqual(4)
  })

  it('are closed after the configured idle time', async () => {
    const webhook = await countingWebhook(0)
    const env = { GUARDRAIL_WEBHOOK_KEEPALIVE_SECONDS: '1' }
    const gateway = await startGateway(llmConfig({}, { guardrails: guardsAt(webhook.port) }), { env })
    await (await chat(gateway)).text()
    expect(webhook.open()).toBeGreaterThan(0)
    await until('they are closed', () => webhook.open() === 0)
  })

  it('must be limited by a number', async () => {
    const env = { GUARDRAIL_WEBHOOK_MAX_CONNECTIONS: 'many' }
    const file = fileURLToPath(new URL('../../../examples/guardrail-webhook.yaml', import.meta.url))
    for (const flags of [['--validate-only'], []]) {
      const { code, stderr } = await runTollgate([...flags, '-f', file], { env })
      expect(code).toBe(1)
      expect(stderr).toContain(
        'GUARDRAIL_WEBHOOK_MAX_CONNECTIONS must be a whole number from 0 on, got "many"',
      )
    }
  })
})

describe('a webhook that is slow or broken', () => {
  const named = (host: string, policies: object): GatewayConfig => ({
    ...llmConfig({}, { guardrails: { request: [{ webhook: { target: { backend: '/guard' } } }] } }),
    backends: [{ name: 'guard', host, policies }],
  })

  it.each([
    ['sends no head', hangs],
    ['sends no end', (_: unknown, response: { write(text: string): void }) => response.write('{"action":')],
    [
      'drips',
      (_: unknown, response: { write(text: string): void; on(event: 'close', then: () => void): void }) => {
        const timer = setInterval(() => response.write(' '), 50)
        response.on('close', () => clearInterval(timer))
      },
    ],
  ] as const)('and %s is given up after the time limit of its backend', async (_, answer) => {
    const webhook = await startMockServer(answer)
    const gateway = await startGateway(
      named(`127.0.0.1:${webhook.port}`, { http: { requestTimeout: '500ms' } }),
    )
    const startedAt = performance.now()
    const response = await chat(gateway)
    const tookMs = performance.now() - startedAt
    expect(response.status).toBe(503)
    expect(tookMs).toBeGreaterThanOrEqual(490)
    expect(tookMs).toBeLessThan(10_000)
    await until('its call is cancelled', () => webhook.seen[0]?.aborted === true)
    expect((await gateway.logged(1))[0]).toMatchObject({
      guards: [{ phase: 'request', outcome: 'fail_closed', reason: 'webhook timed out' }],
    })
  })

  it('and speaks no TLS where it should is not asked in another way', async () => {
    const webhook = await mockWebhook()
    const gateway = await startGateway(named(`127.0.0.1:${webhook.port}`, { backendTLS: {} }))
    expect((await chat(gateway)).status).toBe(503)
    expect(webhook.seen).toHaveLength(0)
  })

  it('and is not there is no reason to start without guards', async () => {
    const port = await freePort()
    const gateway = await startGateway(llmConfig({}, { guardrails: guardsAt(port) }))
    const response = await chat(gateway)
    expect([response.status, await response.text()]).toEqual([
      503,
      'failed to process LLM request: prompt guard failed',
    ])
  })
})

describe('guards', () => {
  it('of a model come after the shared ones, and only where that model is asked', async () => {
    const webhook = await mockWebhook()
    const openai = await mockOpenAi()
    const target = { host: `127.0.0.1:${webhook.port}` }
    const own = { guardrails: { request: [{ name: 'own', webhook: { target } }] } }
    const config = llmConfig(
      {},
      {
        models: [openAiModel('gpt-guarded', openai.url, own), ...models({ openai })],
        guardrails: { request: [{ regex: { rules: [{ pattern: 'hello' }] } }] },
      },
    )
    const gateway = await startGateway(config)
    await chat(gateway, { model: 'gpt-test' })
    expect(webhook.seen).toHaveLength(0)
    await chat(gateway, { model: 'gpt-guarded' })
    expect(webhook.seen.map(({ text }) => text)).toEqual([
      '{"body":{"messages":[{"role":"user","content":"<masked>"}]}}',
    ])
    expect(openai.seen.at(-1)?.text).toContain('<****ed>')
  })

  it('stand at routes under the name that others have for them', async () => {
    const webhook = await mockWebhook()
    const openai = await mockOpenAi()
    const target = { host: `127.0.0.1:${webhook.port}` }
    const port = await freePort()
    const gateway = await startGateway({
      gateways: { default: { port } },
      routes: [
        {
          name: 'chat',
          policies: { ai: { promptGuard: { request: [{ webhook: { target } }] } } },
          backends: [
            {
              ai: { provider: { openAI: {} }, hostOverride: `127.0.0.1:${openai.port}` },
              policies: { backendAuth: { key: 'sk-openai-canary-5f2c9d' } },
            },
          ],
        },
      ],
    })
    expect(gateway.port).not.toBe(port)
    const at = { url: `http://127.0.0.1:${port}` }
    const blocked = await chat(at, { model: 'gpt-test', messages: [{ role: 'user', content: 'block' }] })
    expect([blocked.status, await blocked.text()]).toEqual([403, 'request blocked'])
    const passed = await chat(at, { model: 'gpt-test', messages: [{ role: 'user', content: 'a mask' }] })
    expect(passed.status).toBe(200)
    expect(openai.seen.at(-1)?.text).toContain('a ****')
  })

  it('are not asked about a request that is over its token limit', async () => {
    const webhook = await mockWebhook()
    const gateway = await startGateway(
      llmConfig(
        {},
        { guardrails: guardsAt(webhook.port), policies: { localRateLimit: [{ tokens: 1, unit: 'Hours' }] } },
      ),
    )
    expect((await chat(gateway)).status).toBe(200)
    expect(webhook.seen).toHaveLength(2)
    expect((await chat(gateway)).status).toBe(429)
    expect(webhook.seen).toHaveLength(2)
  })

  it('charge the tokens of an answer that they reject', async () => {
    const webhook = await mockWebhook()
    const gateway = await startGateway(
      llmConfig(
        {},
        { guardrails: guardsAt(webhook.port), policies: { localRateLimit: [{ tokens: 1, unit: 'Hours' }] } },
      ),
    )
    webhook.next(acts({}), acts({ body: 'no', status_code: 403 }))
    expect((await chat(gateway, { stream: true })).status).toBe(403)
    expect((await chat(gateway)).status).toBe(429)
  })

  it('start a stream the sooner the less they buffer', async () => {
    const webhook = await mockWebhook()
    const openai = await mockOpenAi()
    openai.behaviour.content = 'word '.repeat(400).trim()
    openai.behaviour.pauseMs = 2
    const firstByte: Record<string, number> = {}
    const config = (streaming: string) =>
      llmConfig({ openai }, { guardrails: { ...guardsAt(webhook.port), streaming } })
    const gateway = await startGateway(config('disabled'))
    for (const streaming of ['disabled', 'windowed', 'buffered']) {
      if (streaming !== 'disabled') await gateway.reload(config(streaming))
      const startedAt = performance.now()
      const response = await chat(gateway, { model: 'gpt-test', stream: true })
      const reader = response.body?.getReader()
      await reader?.read()
      firstByte[streaming] = performance.now() - startedAt
      for (let read = await reader?.read(); read && !read.done; ) read = await reader?.read()
      firstByte[`${streaming}, last`] = performance.now() - startedAt
    }
    const { disabled = 0, windowed = 0, buffered = 0 } = firstByte
    expect(disabled).toBeLessThan(windowed)
    expect(windowed).toBeLessThan(buffered)
  })
})

describe('the quickstart', () => {
  it('has a guard that one line turns on', async () => {
    const example = fileURLToPath(new URL('../../../examples/quickstart.yaml', import.meta.url))
    const quickstart = readFileSync(example, 'utf8')
    const [, line = ''] = /^ {2}# (guardrails: .*)$/m.exec(quickstart) ?? []
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-quickstart-'))
    endAfter('test', () => rmSync(folder, { recursive: true }))
    const file = join(folder, 'quickstart.yaml')
    writeFileSync(file, quickstart.replace(`# ${line}`, line))
    expect(line).toContain('builtin: email')
    const env = { TOLLGATE_QUICKSTART_KEY: 'tg-quickstart' }
    expect((await runTollgate(['--validate-only', '-f', file], { env })).stderr).toBe('')
  })
})

describe('the sample webhook', () => {
  it('follows the documented protocol', async () => {
    const port = await freePort()
    const script = fileURLToPath(new URL('../../../examples/guardrail-webhook/server.ts', import.meta.url))
    const sample = spawn(process.execPath, [script], {
      env: { PATH: process.env['PATH'], WEBHOOK_ADDRESS: `127.0.0.1:${port}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    endAfter('test', () => {
      sample.kill('SIGKILL')
    })
    await new Promise((resolve) => sample.stdout.once('data', resolve))
    const gateway = await startGateway(llmConfig({}, { guardrails: guardsAt(port) }))
    const ask = (content: string, stream = false) =>
      chat(gateway, { stream, messages: [{ role: 'user', content }] })
    const blocked = await ask('please block this')
    expect([blocked.status, await blocked.text()]).toEqual([403, 'request blocked'])
    expect(await (await ask('a mask')).text()).toContain('a ****')
    expect((await readStream(await ask('a mask', true))).text).not.toContain('mask')
    expect((await (await ask('nothing')).text()).includes('nothing')).toBe(true)
    const bad = await fetch(`http://127.0.0.1:${port}/request`, { method: 'POST', body: '{}' })
    expect(bad.status).toBe(422)
    expect((await chat(gateway, {}, { headers: { authorization: `Bearer ${aliceKey}x` } })).status).toBe(401)
  })
})
